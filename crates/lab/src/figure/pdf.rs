//! PDF from SVG.

use krilla::Document;
use krilla::geom::Size;
use krilla::page::PageSettings;
use krilla_svg::{SurfaceExt, SvgSettings};

use super::FigureError;
use super::parse::parse;

/// Points (1/72 inch) per unit of the SVG: a figure of 2,400 units is 10 inches wide.
const SCALE: f32 = 0.3;

/// One page of the size of an SVG, with lines as lines and text as text. Equal figures make equal
/// bytes.
///
/// # Errors
/// [`FigureError::Unreadable`]: it is no SVG. [`FigureError::Page`]: it has no size, or the page
/// cannot be written.
pub fn pdf(svg: &str) -> Result<Vec<u8>, FigureError> {
    let failed = |error: String| FigureError::Page(error);
    let tree = parse(svg)?;
    let (width, height) = (tree.size().width() * SCALE, tree.size().height() * SCALE);
    let sizes = Size::from_wh(width, height).zip(PageSettings::from_wh(width, height));
    let (size, settings) = sizes.ok_or_else(|| failed("it has no size".into()))?;
    let mut document = Document::new();
    let mut page = document.start_page_with(settings);
    let mut surface = page.surface();
    let drawn = surface.draw_svg(&tree, size, SvgSettings::default());
    surface.finish();
    page.finish();
    drawn.ok_or_else(|| failed("it cannot be drawn".into()))?;
    document
        .finish()
        .map_err(|error| failed(format!("{error:?}")))
}
