"""Those that wait until the newest committed image is as they need it.

Always true: each waiting caller is looked at once per new image, and waits no longer than it said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from strandline.metadata.image import MetadataImage

Fits = Callable[[MetadataImage], bool]


class ImageWatch:
    def __init__(self, image: Callable[[], MetadataImage]) -> None:
        self._image = image
        self._waiting: dict[asyncio.Future[None], Fits] = {}

    def changed(self) -> None:
        """There is a newer image."""
        image = self._image()
        for future, fits in list(self._waiting.items()):
            if not future.done() and fits(image):
                future.set_result(None)

    async def until(self, fits: Fits, timeout_s: float | None = None) -> None:
        """Return when the image fits, or when the time is over."""
        if fits(self._image()):
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting[future] = fits
        try:
            async with asyncio.timeout(timeout_s):
                await future
        except TimeoutError:
            pass
        finally:
            del self._waiting[future]
