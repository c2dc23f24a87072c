"""Secrets are found where they stand, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

from lapis.domain.secrets import MASK, is_secret_variable, masked, replaced


@pytest.mark.parametrize(
    "name",
    ["API_KEY", "HF_TOKEN", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY", "AZURE_STORAGE_CONNECTION_STRING", "clientSecret",
     "STORAGE_ACCOUNT_KEY", "password", "MYSQL_PWD", "SAS_TOKEN", "wandb_api_key", "GOOGLE_CREDENTIALS"],
)  # fmt: skip
def test_a_variable_whose_name_says_so_is_a_secret(name: str) -> None:
    assert is_secret_variable(name, "x1y2z3")


@pytest.mark.parametrize(
    "name, value",
    [("TOKENIZERS_PARALLELISM", "false"), ("EXAMPLE_ENV_VAR", "EXAMPLE_VALUE"), ("MAX_TOKEN", "512"), ("PATH", "/bin"),
     ("KEYBOARD", "us"), ("AZUREML_RUN_ID", "x"), ("MONKEY", "george"), ("USE_KEY", "true"), ("PWDUMP", "x"),
     ("CUDA_VISIBLE_DEVICES", "0"), ("TOKEN_LIMIT", "many"), ("PASSWORDLESS", "x")],
)  # fmt: skip
def test_other_variables_are_not(name: str, value: str) -> None:
    assert not is_secret_variable(name, value)


@pytest.mark.parametrize(
    "text, shown",
    [
        ("https://a.blob.core.windows.net/c/f.csv?sv=2020&sig=S%2Fs%3D", f"https://a.blob.core.windows.net/c/f.csv?sv=2020&sig={MASK}"),
        ("https://user:S@example.org/x", f"https://user:{MASK}@example.org/x"),
        ("https://ghp_0123456789@github.com/me/x.git", f"https://{MASK}@github.com/me/x.git"),
        ("git@github.com:me/x.git", "git@github.com:me/x.git"),
        ("s3://bucket/k?X-Amz-Signature=S&x=1", f"s3://bucket/k?X-Amz-Signature={MASK}&x=1"),
        ("AccountName=a;AccountKey=S==;EndpointSuffix=x", f"AccountName=a;AccountKey={MASK};EndpointSuffix=x"),
        ("Server=s;User=me;Password=S;", f"Server=s;User=me;Password={MASK};"),
        ("https://example.org/search?q=keys&page=2", "https://example.org/search?q=keys&page=2"),
        ("me@example.org", "me@example.org"),
        ("epochs=5", "epochs=5"),
    ],
)  # fmt: skip
def test_the_secret_part_of_an_address_is_hidden_and_the_rest_stays(text: str, shown: str) -> None:
    assert masked(text) == shown and masked({"path": [text]}) == {"path": [shown]}


@pytest.mark.parametrize(
    "given, shown",
    [
        (["--password", "S", "--lr", "0.1"], ["--password", MASK, "--lr", "0.1"]),
        (["--api-key=S", "-x"], [f"--api-key={MASK}", "-x"]),
        (["--secret", "--lr", "0.1"], ["--secret", "--lr", "0.1"]),
        (["--sort-key", "age", "--tokenizer", "bert"], ["--sort-key", "age", "--tokenizer", "bert"]),
        (["--data", {"input": "x"}], ["--data", {"input": "x"}]),
        ("DB_PASSWORD=S python a.py --api-key S --lr 1", f"DB_PASSWORD={MASK} python a.py --api-key {MASK} --lr 1"),
        ("echo a && echo b", "echo a && echo b"),
    ],
)
def test_arguments_and_commands_hide_what_follows_the_name_of_a_secret(given: Any, shown: Any) -> None:
    assert masked({"arguments": given}) == {"arguments": shown}


def test_fields_that_are_secrets_by_definition_are_hidden_wherever_they_are() -> None:
    registry = {"address": "a", "username": "u", "password": "S"}
    found = masked({"docker": {"baseImageRegistry": registry}, "list": [{"account_key": "S", "sasToken": None}]})
    assert found["docker"]["baseImageRegistry"] == {**registry, "password": MASK}
    assert found["list"] == [{"account_key": MASK, "sasToken": None}]


def test_what_is_hidden_already_stays_as_it_is() -> None:
    sealed = "lapis-sealed:abc"
    value = {
        "password": MASK,
        "environmentVariables": {"API_KEY": sealed},
        "path": f"https://u:{sealed}@x?sig={sealed}",
    }
    assert replaced(value, lambda text: 1 / 0) == value  # type: ignore[arg-type,return-value]
    assert "sealed" not in str(masked(value))


def test_a_known_secret_is_hidden_in_any_text() -> None:
    assert masked({"arguments": ["--x", "a-known-one-b"]}, ["known-one"]) == {"arguments": ["--x", f"a-{MASK}-b"]}
