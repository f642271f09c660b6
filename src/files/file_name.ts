/** The longest name that the common file systems store, in UTF-16 code units. */
const NAME_CHARACTERS = 255;
const ASCII_CHARACTERS = 150;
const SLUG_CHARACTERS = 80;
const NAMELESS = "file";

// Control characters, and characters that change the direction of the text or hide a part of it.
const CONTROLS = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}\u206a-\u206f\ufff9-\ufffb]/gu;
// The flags of England, Scotland and Wales are the only emoji that need tags. Other tags are hidden text.
const TAGS =
  /(\u{1f3f4}\u{e0067}\u{e0062}(?:\u{e0065}\u{e006e}\u{e0067}|\u{e0073}\u{e0063}\u{e0074}|\u{e0077}\u{e006c}\u{e0073})\u{e007f})|[\u{e0000}-\u{e007f}]/gu;
const BLANK = /^[\s.\p{Default_Ignorable_Code_Point}]*$/u;
const EXTENSION = /\.[A-Za-z0-9]{1,16}$/;

/** Returns a file's name as its sender chose it, without the path and control characters, for people and agents. */
export function cleanFileName(name: string): string {
  return findShownName(name) || NAMELESS;
}

function findShownName(sent: string): string {
  const last = sent.split(/[/\\]/).at(-1) ?? "";
  const name = last.toWellFormed().replace(TAGS, "$1").replace(CONTROLS, "");
  return BLANK.test(name) ? "" : shorten(name, NAME_CHARACTERS);
}

function shorten(name: string, maxCharacters: number): string {
  if (name.length <= maxCharacters) return name;
  const extension = EXTENSION.exec(name)?.[0] ?? "";
  // Drops the first half of a surrogate pair at the end.
  return name.slice(0, maxCharacters - extension.length).replace(/[\ud800-\udbff]$/, "") + extension;
}

/**
 * Builds the ASCII name of a stored file, at most 117 bytes. The id makes the name unique and prevents device names and leading dots. The
 * extension stays even if the rest of the name is replaced, so that programs recognize the type.
 */
export function buildStoredName(id: string, name: string): string {
  const plain = findShownName(name).normalize("NFKD").replace(/\p{M}/gu, "").trimEnd();
  const extension = EXTENSION.exec(plain)?.[0] ?? "";
  const stem = plain.slice(0, plain.length - extension.length)
    .replace(/[^A-Za-z0-9._-]+/g, "_")
    .replace(/\.{2,}/g, ".")
    .replace(/^[_-]+/, "")
    .slice(0, SLUG_CHARACTERS - extension.length - NAMELESS.length)
    .replace(/[._-]+$/, "");
  if (extension === "") return [id, stem.replace(/^\./, "").replaceAll(".", "_")].filter(Boolean).join("-");
  // Keeps the first of two extensions, as in `<id>-file.tar.gz`.
  return `${id}-${stem === "" || stem.startsWith(".") ? NAMELESS : ""}${stem}${extension}`;
}

/** Builds the ASCII form of a file name, for clients that read no other characters. */
export function toAsciiName(name: string): string {
  return shorten(name.replace(/[^\x20-\x7e]|["\\%/]/g, "_"), ASCII_CHARACTERS);
}
