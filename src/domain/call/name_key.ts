/** Returns the form of a name for comparison: lower case, accents composed. */
export function normalizeName(name: string): string {
  return name.normalize("NFC").toLowerCase();
}

/** Returns a key that is the same for names that people can hardly tell apart, in Latin, Greek, Cyrillic and Armenian letters. */
export function buildLookKey(name: string): string {
  const plain = mapLetters(name.normalize("NFKD"), CAPITALS).toLowerCase().normalize("NFKD");
  return mapLetters(plain, SMALL)
    .replace(/\p{Dash_Punctuation}|\u2212/gu, "-")
    .replace(/[\u02b9-\u02bc\u2018\u2019\u201b\u2032`\u00b4]/g, "'")
    .replaceAll("rn", "m")
    .replaceAll("vv", "w")
    .replace(/\s+/g, " ")
    .trim()
    .normalize("NFC");
}

function mapLetters(text: string, letters: ReadonlyMap<string, string>): string {
  return [...text].map((letter) => letters.get(letter) ?? letter).join("");
}

// Capitals that look like another letter than their lower-case form does.
const CAPITALS = readPairs("ΗH ΝN ΜM ΥY ΡP ΧX ԌG");

// A lower-case letter here also represents its capital: в represents В, which looks like B.
const SMALL = readPairs(
  "аa вb еe ԁd ԍg һh нh іi ӏi јj кk ӄk мm оo рp ԛq ѕs тt уy үy ѵv ԝw ѡw хx ьb " +
    "αa βb γy εe ζz ηn ιi κk μu νv οo ρp σo ςc τt υu χx ωw ϲc ϳj " +
    "աw ցg հh յj ոn օo սu զq " +
    "ıi ɩi ɑa ɡg ʏy ɪi ɴn ʀr ʙb ʜh ʟi ᴀa ᴄc ᴅd ᴇe ᴊj ᴋk ᴍm ᴏo ᴘp ᴛt ᴜu ᴠv ᴡw ᴢz ꜰf ꜱs " +
    "li 1i |i ǀi 0o",
);

function readPairs(pairs: string): ReadonlyMap<string, string> {
  return new Map(pairs.split(" ").map((pair) => [pair.charAt(0), pair.slice(1)]));
}
