//! PNG from SVG.

use resvg::tiny_skia::{Pixmap, Transform};

use super::FigureError;
use super::parse::parse;

/// Pixels per unit of the SVG: figures are 2,400 units wide.
const SCALE: f32 = 0.75;

/// The picture of an SVG, in the font that is part of the program.
///
/// # Errors
/// [`FigureError::Unreadable`]: it is no SVG. [`FigureError::Pixels`]: it has no size.
pub fn png(svg: &str) -> Result<Vec<u8>, FigureError> {
    let failed = |error: String| FigureError::Pixels(error);
    let tree = parse(svg)?;
    let size = tree.size().to_int_size().scale_by(SCALE);
    let size = size.ok_or_else(|| failed("it has no size".into()))?;
    let pixels = Pixmap::new(size.width(), size.height());
    let mut pixels = pixels.ok_or_else(|| failed("it is too large".into()))?;
    let transform = Transform::from_scale(SCALE, SCALE);
    resvg::render(&tree, transform, &mut pixels.as_mut());
    pixels
        .encode_png()
        .map_err(|error| failed(error.to_string()))
}
