from tests.unit.node.conftest import play

__all__ = ["play"]
