"""Cards and pictures of the demo's page."""

import io

import numpy as np
import pytest
from PIL import Image

from examples.page_parts import card, picture, png_bytes
from tests.show.report.test_page import assert_nothing_from_elsewhere


def test_a_png_holds_the_very_pixels():
    picture = np.random.default_rng(0).integers(256, size=(5, 7, 3), dtype=np.uint8)
    with Image.open(io.BytesIO(png_bytes(picture))) as image:
        assert image.format == "PNG"
        assert (np.asarray(image) == picture).all()
    with pytest.raises(ValueError, match=r"got \(5, 7\) of uint8"):
        png_bytes(picture[:, :, 0])


def test_a_card_holds_a_picture_and_text_stays_text():
    content = card("C < D", picture(np.zeros((2, 3, 3), np.uint8), 'a "picture"'))
    assert "C &lt; D" in content
    assert 'width="3" height="2" alt="a &quot;picture&quot;"' in content
    assert_nothing_from_elsewhere(content)
