//! Small files of each kind, made for these tests.
#![allow(dead_code)]

use std::io::{Cursor, Write};

use hayro::hayro_interpret::InterpreterSettings;
use hayro::hayro_syntax::Pdf as Drawing;
use hayro::vello_cpu::color::palette::css::WHITE;
use hayro::{PixmapSettings, RenderCache, RenderSettings, render};
use image::GrayImage;
use lopdf::content::{Content, Operation};
use lopdf::{Document as Pdf, Object, Stream, dictionary};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// A zip archive with these entries.
pub fn archive(entries: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in entries {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// A Word document with this inside of its body.
pub fn docx(body: &str) -> Vec<u8> {
    let document = format!(
        "<?xml version=\"1.0\"?><w:document xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\">\
         <w:body>{body}</w:body></w:document>"
    );
    let styles = "<w:styles><w:style w:styleId=\"Top\"><w:name w:val=\"heading 1\"/></w:style>\
        <w:style w:styleId=\"Mine\"><w:name w:val=\"My heading\"/><w:basedOn w:val=\"Sub\"/></w:style>\
        <w:style w:styleId=\"Sub\"><w:name w:val=\"heading 2\"/></w:style></w:styles>";
    archive(&[("word/document.xml", &document), ("word/styles.xml", styles)])
}

/// A paragraph of a Word document, in this style where there is one.
pub fn paragraph(style: &str, text: &str) -> String {
    let style = if style.is_empty() {
        String::new()
    } else {
        format!("<w:pPr><w:pStyle w:val=\"{style}\"/></w:pPr>")
    };
    format!("<w:p>{style}<w:r><w:t>{text}</w:t></w:r></w:p>")
}

/// A letter with headings, a table, deleted text and a text box that is there twice.
pub fn letter() -> Vec<u8> {
    let table = "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>Boiler</w:t></w:r></w:p></w:tc>\
        <w:tc><w:p><w:r><w:t>1999</w:t></w:r></w:p></w:tc></w:tr></w:tbl>";
    let boxes = "<w:p><w:r><mc:AlternateContent><mc:Choice><w:txbxContent><w:p><w:r><w:t>In a box</w:t></w:r></w:p>\
        </w:txbxContent></mc:Choice><mc:Fallback><w:p><w:r><w:t>In a box</w:t></w:r></w:p></mc:Fallback>\
        </mc:AlternateContent></w:r></w:p>";
    let deleted = "<w:p><w:r><w:t>Kept </w:t></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del>\
        <w:r><w:t>&amp; whole</w:t></w:r></w:p>";
    let parts = [
        paragraph("Top", "House"),
        paragraph("", "It is old."),
        paragraph("Mine", "Cellar"),
        table.into(),
        boxes.into(),
        deleted.into(),
    ];
    docx(&parts.concat())
}

/// A presentation of two slides, shown in the other order than they are stored.
pub fn pptx() -> Vec<u8> {
    let slide = |title: &str, text: &str| {
        format!(
            "<p:sld><p:cSld><p:spTree><p:sp><p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>\
             <p:sp><p:nvSpPr><p:nvPr><p:ph type=\"title\"/></p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:t>{title}</a:t>\
             </a:r></a:p></p:txBody></p:sp></p:spTree></p:cSld></p:sld>"
        )
    };
    let notes = "<p:notes><p:sp><p:nvPr><p:ph type=\"body\"/></p:nvPr><a:p><a:r><a:t>Smile here.</a:t></a:r></a:p></p:sp>\
        </p:notes>";
    archive(&[
        (
            "ppt/presentation.xml",
            "<p:presentation><p:sldIdLst><p:sldId id=\"256\" r:id=\"r2\"/><p:sldId id=\"257\" r:id=\"r1\"/>\
             </p:sldIdLst></p:presentation>",
        ),
        (
            "ppt/_rels/presentation.xml.rels",
            "<Relationships><Relationship Id=\"r1\" Type=\"x/slide\" Target=\"slides/slide1.xml\"/>\
             <Relationship Id=\"r2\" Type=\"x/slide\" Target=\"/ppt/slides/slide2.xml\"/></Relationships>",
        ),
        ("ppt/slides/slide1.xml", &slide("Second", "Thanks.")),
        ("ppt/slides/slide2.xml", &slide("First", "Welcome.")),
        (
            "ppt/slides/_rels/slide2.xml.rels",
            "<Relationships><Relationship Id=\"n\" Type=\"x/notesSlide\" Target=\"../notesSlides/n1.xml\"/></Relationships>",
        ),
        ("ppt/notesSlides/n1.xml", notes),
    ])
}

/// A workbook with one sheet of these rows of XML.
pub fn xlsx(rows: &str) -> Vec<u8> {
    archive(&[
        (
            "[Content_Types].xml",
            "<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\"/>",
        ),
        (
            "_rels/.rels",
            "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\"><Relationship \
             Id=\"rId1\" Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument\" \
             Target=\"xl/workbook.xml\"/></Relationships>",
        ),
        (
            "xl/workbook.xml",
            "<workbook xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\" \
             xmlns:r=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships\"><sheets>\
             <sheet name=\"Prices\" sheetId=\"1\" r:id=\"rId1\"/></sheets></workbook>",
        ),
        (
            "xl/_rels/workbook.xml.rels",
            "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\"><Relationship \
             Id=\"rId1\" Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet\" \
             Target=\"worksheets/sheet1.xml\"/></Relationships>",
        ),
        (
            "xl/worksheets/sheet1.xml",
            &format!(
                "<worksheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"><sheetData>{rows}\
                 </sheetData></worksheet>"
            ),
        ),
    ])
}

/// A price list with a gap between its rows.
pub fn prices() -> Vec<u8> {
    let text = |cell: &str, text: &str| format!("<c r=\"{cell}\" t=\"inlineStr\"><is><t>{text}</t></is></c>");
    let rows = [
        format!("<row r=\"1\">{}{}</row>", text("A1", "Item"), text("B1", "Price")),
        format!(
            "<row r=\"2\">{}<c r=\"B2\"><v>0.30000000000000004</v></c></row>",
            text("A2", "Nail")
        ),
        format!(
            "<row r=\"9\">{}<c r=\"B9\"><v>12</v></c></row>",
            text("A9", "Hammer")
        ),
    ];
    xlsx(&rows.concat())
}

/// An e-book of two chapters, the second one's file first in the archive.
pub fn epub() -> Vec<u8> {
    archive(&[
        ("mimetype", "application/epub+zip"),
        (
            "META-INF/container.xml",
            "<container><rootfiles><rootfile full-path=\"OEBPS/book.opf\"/></rootfiles></container>",
        ),
        (
            "OEBPS/book.opf",
            "<package><manifest><item id=\"b\" href=\"two%20.xhtml\"/><item id=\"a\" href=\"text/one.xhtml\"/></manifest>\
             <spine><itemref idref=\"a\"/><itemref idref=\"b\"/></spine></package>",
        ),
        (
            "OEBPS/two .xhtml",
            "<html><body><h1>Two</h1><p>The end.</p></body></html>",
        ),
        (
            "OEBPS/text/one.xhtml",
            "<html><body><h1>One</h1><p>It was a dark night.</p></body></html>",
        ),
    ])
}

/// A mail with a body in two versions and an attachment.
pub fn mail() -> Vec<u8> {
    "From: Ada <ada@example.org>\r\nTo: Grace <grace@example.org>\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n\
     Date: Tue, 02 Jan 2024 10:00:00 +0000\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n\
     --b\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n\
     Dear Grace,\r\n\r\nthe engine =\r\nworks.\r\n\r\n--b\r\nContent-Type: application/pdf\r\n\
     Content-Disposition: attachment; filename=plan.pdf\r\n\r\nx\r\n--b--\r\n"
        .as_bytes()
        .to_vec()
}

/// A PDF with one line of text a page; an empty line makes a blank page.
pub fn pdf(lines: &[&str]) -> Pdf {
    let mut pdf = Pdf::with_version("1.5");
    let pages_id = pdf.new_object_id();
    let font = dictionary! { "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Helvetica" };
    let font_id = pdf.add_object(font);
    let resources_id = pdf.add_object(dictionary! { "Font" => dictionary! { "F1" => font_id } });
    let mut kids: Vec<Object> = Vec::new();
    for line in lines {
        let mut operations = Vec::new();
        if !line.is_empty() {
            operations = vec![
                Operation::new("BT", vec![]),
                Operation::new("Tf", vec!["F1".into(), 12.into()]),
                Operation::new("Td", vec![72.into(), 700.into()]),
                Operation::new("Tj", vec![Object::string_literal(*line)]),
                Operation::new("ET", vec![]),
            ];
        }
        let content = Content { operations }.encode().unwrap();
        let content_id = pdf.add_object(Stream::new(dictionary! {}, content));
        let page = dictionary! {
            "Type" => "Page", "Parent" => pages_id, "Contents" => content_id, "Resources" => resources_id,
            "MediaBox" => vec![0.into(), 0.into(), 595.into(), 842.into()],
        };
        kids.push(pdf.add_object(page).into());
    }
    finished(pdf, pages_id, kids)
}

/// A PDF whose only page is this picture, of grey dots.
pub fn scan(width: u32, height: u32, dots: Vec<u8>) -> Pdf {
    let mut pdf = Pdf::with_version("1.5");
    let pages_id = pdf.new_object_id();
    let mut picture = Stream::new(
        dictionary! {
            "Type" => "XObject", "Subtype" => "Image", "Width" => i64::from(width), "Height" => i64::from(height),
            "ColorSpace" => "DeviceGray", "BitsPerComponent" => 8,
        },
        dots,
    );
    picture.compress().unwrap();
    let picture_id = pdf.add_object(picture);
    let resources = dictionary! { "XObject" => dictionary! { "I" => picture_id } };
    let content = format!("q {width} 0 0 {height} 0 0 cm /I Do Q");
    let content_id = pdf.add_object(Stream::new(dictionary! {}, content.into_bytes()));
    let page = dictionary! {
        "Type" => "Page", "Parent" => pages_id, "Contents" => content_id, "Resources" => resources,
        "MediaBox" => vec![0.into(), 0.into(), i64::from(width).into(), i64::from(height).into()],
    };
    let kids = vec![pdf.add_object(page).into()];
    finished(pdf, pages_id, kids)
}

fn finished(mut pdf: Pdf, pages_id: lopdf::ObjectId, kids: Vec<Object>) -> Pdf {
    let count = kids.len() as i64;
    let pages = dictionary! { "Type" => "Pages", "Kids" => kids, "Count" => count };
    pdf.objects.insert(pages_id, pages.into());
    let catalog_id = pdf.add_object(dictionary! { "Type" => "Catalog", "Pages" => pages_id });
    pdf.trailer.set("Root", catalog_id);
    pdf
}

/// A PDF as a file.
pub fn saved(mut pdf: Pdf) -> Vec<u8> {
    let mut bytes = Vec::new();
    pdf.save_to(&mut bytes).unwrap();
    bytes
}

/// A line of text as a small picture.
pub fn drawn(line: &str) -> GrayImage {
    let drawing = Drawing::new(saved(pdf(&[line]))).unwrap();
    let settings = PixmapSettings {
        x_scale: 2.0,
        y_scale: 2.0,
        bg_color: WHITE,
    };
    let page = &drawing.pages()[0];
    let drawn = render(
        page,
        &RenderCache::new(),
        &InterpreterSettings::default(),
        &RenderSettings::default(),
        &settings,
    );
    let (width, height) = (u32::from(drawn.width()), 200);
    // The line stands 142 points below the page's upper end.
    let first = 4 * usize::from(drawn.width()) * 190;
    let dots = drawn.data_as_u8_slice()[first..]
        .chunks(4)
        .map(|dot| dot[1])
        .take((width * height) as usize)
        .collect();
    GrayImage::from_raw(width, height, dots).unwrap()
}
