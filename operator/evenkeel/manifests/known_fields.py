"""Separates the fields that a model has from those that it does not have.

`mistakes` and `request_mistakes` call `without_unknown`. Of the API server it is strict validation
that refuses such fields; plain pydantic models of ours take no notice of them.
"""

from collections.abc import Mapping
from typing import Any, get_args

from evenkeel.manifests.findings import Mistake, Path
from evenkeel.manifests.nearest import nearest_field
from evenkeel.manifests.template_mistakes import unknown_field
from evenkeel.resource.v1alpha1 import Part


def names_of(model: type[Part]) -> dict[str, Any]:
    """The fields as users write them, each with its type."""
    return {str(info.alias): info.annotation for info in model.model_fields.values()}


def without_unknown(
    part: Mapping[str, Any],
    model: type[Part],
    mistakes: list[Mistake],
    *,
    kind: str,
    root: type[Part],
    path: Path = ("spec",),
) -> dict[str, Any]:
    """The fields that the model has. What is left out is added to the mistakes, and a misspelt
    field is taken for the one that was meant, so that no mistake follows from it. `root` is the
    model of the whole spec, and `kind` is the object's."""
    known = names_of(model)
    out: dict[str, Any] = {}

    def inner(value: Any, within: type[Part], at: Path) -> Any:
        if not isinstance(value, Mapping):
            return value
        return without_unknown(value, within, mistakes, kind=kind, root=root, path=at)

    for name, value in part.items():
        meant: str | None = name
        at = (*path, name)
        if name not in known:
            meant, shown = nearest_field(name, known, part, out)
            mistakes.append(Mistake(at, _unknown(name, shown, path, kind, root)))
        if meant is None or value is None:
            continue
        within = _model_in(known[meant])
        if within is not None and isinstance(value, list):
            value = [inner(each, within, (*at, number)) for number, each in enumerate(value)]
        elif within is not None:
            value = inner(value, within, at)
        out[meant] = value
    return out


def _unknown(name: str, meant: str | None, path: Path, kind: str, root: type[Part]) -> str:
    of = f"of a {kind}"
    if meant is None and len(path) > 1 and name in names_of(root):
        return f"is not a field {of} here; it belongs in spec"
    return unknown_field(name, meant, of=of, in_template="jobTemplate" in names_of(root))


def _model_in(annotation: Any) -> type[Part] | None:
    """The model in a type such as `DstSpec | None` or `list[ParameterSpec]`; None for other
    types."""
    if isinstance(annotation, type) and issubclass(annotation, Part):
        return annotation
    found = (_model_in(each) for each in get_args(annotation))
    return next((model for model in found if model is not None), None)
