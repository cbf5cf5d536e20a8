"""Resizes or blurs a picture, or removes a plain background, with Pillow.

A background is what has the colour of the border and is connected to it. That suits a product in
front of a plain wall, not a street.
"""

from pathlib import Path

from capstan import Call, MediaReference, capability
from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageOps
from pydantic import BaseModel, ConfigDict, Field

CONTENT_TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".webp": "image/webp"}
MAP_SIZE = 256
"""Side of the small map in which the background is followed from the border."""


class File(BaseModel):
    model_config = ConfigDict(extra="forbid")
    media_store_path: MediaReference


class Job(BaseModel):
    model_config = ConfigDict(extra="forbid")
    picture: File
    max_width: int | None = Field(None, ge=1, le=8_192, description="pixels; never enlarges")
    blur: float = Field(0, ge=0, le=200, description="radius in pixels")
    remove_background: bool = False
    tolerance: int = Field(24, ge=0, le=255, description="distance from the colour of the border")
    output_path: MediaReference = Field(description="ends in .png, .jpg or .webp")


class Picture(BaseModel):
    output_path: str
    width: int
    height: int
    removed: float = Field(ge=0, le=1, description="share of the pixels that became transparent")


def read_picture(path: Path) -> Image.Image:
    """Read a picture upright, with an alpha channel."""
    try:
        with Image.open(path) as picture:
            return ImageOps.exif_transpose(picture).convert("RGBA")
    except Image.UnidentifiedImageError:
        raise ValueError("picture: the file is no picture that Pillow reads") from None


def find_background(picture: Image.Image, tolerance: int) -> Image.Image:
    """Return a mask that is 255 where the background is."""
    colours = picture.convert("RGB")
    right, bottom = picture.width - 1, picture.height - 1
    corners = [colours.getpixel(at) for at in ((0, 0), (right, 0), (0, bottom), (right, bottom))]
    border = tuple(sorted(channel)[1] for channel in zip(*corners, strict=True))
    distances = ImageChops.difference(colours, Image.new("RGB", picture.size, border)).split()
    farthest = ImageChops.lighter(ImageChops.lighter(*distances[:2]), distances[2])
    alike = farthest.point([255 if distance <= tolerance else 0 for distance in range(256)])
    reached = ImageOps.expand(alike.resize((MAP_SIZE, MAP_SIZE), Image.Resampling.NEAREST), 1, 255)
    ImageDraw.floodfill(reached, (0, 0), 128)
    joined = reached.crop((1, 1, MAP_SIZE + 1, MAP_SIZE + 1)).point(
        [255 if value == 128 else 0 for value in range(256)]
    )
    # One cell more, because the small map cuts the edge of the background coarsely.
    wider = joined.filter(ImageFilter.MaxFilter(3)).resize(picture.size, Image.Resampling.NEAREST)
    return ImageChops.multiply(alike, wider)


@capability(
    name="picture",
    version="1.0.0",
    tags=["local"],
    max_concurrency=2,
    deterministic=True,
)
def edit(job: Job, call: Call) -> Picture:
    """Resizes or blurs a picture, or removes a plain background."""
    ending = Path(job.output_path).suffix
    if ending not in CONTENT_TYPES:
        raise ValueError(f"output_path: expected one of {', '.join(CONTENT_TYPES)}, got {ending!r}")
    if job.remove_background and ending == ".jpg":
        raise ValueError("output_path: a .jpg has no transparency; expected .png or .webp")
    picture = read_picture(call.download(job.picture.media_store_path))
    call.progress(0.3, "read")
    removed = 0.0
    if job.remove_background:
        background = find_background(picture, job.tolerance)
        removed = background.histogram()[255] / (picture.width * picture.height)
        picture.putalpha(ImageChops.subtract(picture.getchannel("A"), background))
    call.check()
    if job.max_width is not None and picture.width > job.max_width:
        height = max(1, round(picture.height * job.max_width / picture.width))
        picture = picture.resize((job.max_width, height), Image.Resampling.LANCZOS)
    if job.blur > 0:
        picture = picture.filter(ImageFilter.GaussianBlur(job.blur))
    call.progress(0.8, "edited")
    result = call.temporary_path(f"picture{ending}")
    (picture.convert("RGB") if ending == ".jpg" else picture).save(result)
    call.upload(result, job.output_path, CONTENT_TYPES[ending])
    width, height = picture.size
    return Picture(output_path=job.output_path, width=width, height=height, removed=removed)


if __name__ == "__main__":
    edit.serve()
