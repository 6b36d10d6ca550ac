//! A drawn figure, read again for the formats that are made of it.

use std::sync::Arc;

use resvg::usvg::{self, fontdb};

use super::FigureError;

/// The elements of an SVG, its text in the font that is part of the program.
///
/// # Errors
/// [`FigureError::Unreadable`]: it is no SVG.
pub(super) fn parse(svg: &str) -> Result<usvg::Tree, FigureError> {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(notosans::REGULAR_TTF.to_vec());
    fonts.load_font_data(notosans::BOLD_TTF.to_vec());
    let options = usvg::Options {
        fontdb: Arc::new(fonts),
        ..usvg::Options::default()
    };
    usvg::Tree::from_str(svg, &options).map_err(|error| FigureError::Unreadable(error.to_string()))
}
