"""What runs in the user's interpreter behind a service: worker, entry script, models, request formats. Light."""
