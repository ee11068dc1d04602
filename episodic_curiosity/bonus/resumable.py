"""The state of a bonus: copied, checked before anything changes, and loaded in part."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from episodic_curiosity.support.checks import check_type, first_difference
from episodic_curiosity.support.state import copied, within


class Resumable(nn.Module):
    """A module whose state is checked before loading, and can be loaded in part."""

    def state_dict(self, **options: Any) -> dict[str, Any]:  # type: ignore[override]
        """Returns a copy of the complete state, for an exact resume."""
        state: dict[str, Any] = super().state_dict(**options)
        # torch gives `destination` to parts of a module: what is returned is then not used.
        return state if "destination" in options else copied(state)

    def live_state_dict(self) -> dict[str, Any]:
        """As `state_dict`, but no copy: write it before the next step."""
        return dict(super().state_dict())

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """Restores a state of `state_dict`; raises before anything has changed."""
        check_type("state_dict", state_dict, Mapping)
        if assign:
            raise ValueError("a bonus copies a state into its own tensors, got assign=True")
        found = {name: part for name, part in state_dict.items() if isinstance(part, Tensor)}
        if difference := first_difference(found, self._tensors()):
            raise ValueError(f"the bonus's state {difference}")
        rest = {name: part for name, part in state_dict.items() if name not in found}
        for name, module in self.named_modules():
            if isinstance(module, Resumable):
                key = f"{name}._extra_state".removeprefix(".")
                needs_extra = type(module).set_extra_state is not nn.Module.set_extra_state
                if needs_extra and key not in rest:
                    raise ValueError(f"the bonus's state lacks {key}")
                module.check_extra_state(rest.pop(key, None))
        if rest:
            raise ValueError(f"the bonus's state has something unexpected, {min(rest)}")
        return super().load_state_dict(state_dict, strict, assign)

    def tensors_of(self, names: tuple[str, ...]) -> dict[str, Tensor]:
        """The tensors of these modules and buffers, by name; no copies."""
        return within(self._tensors(), names)

    def load_learnt(self, state: Mapping[str, Any], names: tuple[str, ...]) -> None:
        """Takes these modules and buffers from a state of any number of environments."""
        own, found = self.tensors_of(names), within(state, names)
        if difference := first_difference(found, own):
            raise ValueError(f"the bonus's state {difference}")
        for name, tensor in own.items():
            tensor.detach().copy_(found[name])

    def check_extra_state(self, extra: Any) -> None:
        """Raises unless `set_extra_state` accepts this; there is none by default."""
        if extra is not None:
            raise ValueError(f"the bonus's state has something unexpected: {extra!r:.80}")

    def _tensors(self) -> dict[str, Tensor]:
        """All tensors of `state_dict`, without its other content."""
        tensors: dict[str, Tensor] = dict(self.named_parameters())
        for prefix, module in self.named_modules():
            for name, buffer in module.named_buffers(recurse=False):
                if name not in module._non_persistent_buffers_set:
                    tensors[f"{prefix}.{name}".removeprefix(".")] = buffer
        return tensors
