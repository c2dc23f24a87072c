from lapis.environments.values import Recipe


def recipe(definition, *, pythons, gpu, strict):
    deps = definition["python"]["condaDependencies"]["dependencies"]
    pip = [l for d in deps if isinstance(d, dict) for l in d["pip"]]
    return Recipe(
        python=next(p for p in pythons if p.startswith("3.11")),
        requirements=tuple(l for l in pip if not l.startswith(("azureml", "-"))),
        pip_options=tuple(l for l in pip if l.startswith("-")),
    )
