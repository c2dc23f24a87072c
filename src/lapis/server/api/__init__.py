"""One router per noun: parse, one control call, answer."""
