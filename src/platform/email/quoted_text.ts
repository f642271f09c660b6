const ATTRIBUTION_MAX_LINES = 3;
const ATTRIBUTION_MAX_CHARACTERS = 300;
/** Lines after which a program repeats the earlier mail without marks. */
const SEPARATORS = [
  /^-{2,} ?(original message|original appointment|ursprüngliche nachricht|message d'origine|mensaje original|原始邮件|原始郵件) ?-{2,}$/i,
  /^_{20,}$/,
];
const OUTLOOK_FIELDS = [
  /^\*?(from|von|de|da|发件人|寄件者)\s?[:：]/i,
  /^\*?(sent|date|gesendet|datum|envoyé|enviado|inviato|发送时间|日期)\s?[:：]/i,
];

/** Cuts the parts of a mail that repeat earlier mails. Keeps a mail that has no other text. */
export function cutQuotes(text: string): string {
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  const end = lines.findIndex((line, at) => isSeparator(line, lines.slice(at + 1, at + 4)));
  const own = removeQuotedLines(end === -1 ? lines : lines.slice(0, end));
  return own.trim() === "" ? text.trim() : own.trim();
}

function isSeparator(line: string, following: readonly string[]): boolean {
  const text = line.trim();
  if (SEPARATORS[0]?.test(text)) return true;
  const fields = SEPARATORS[1]?.test(text)
    ? following.filter((one) => one.trim() !== "")
    : [text, ...following];
  return OUTLOOK_FIELDS.every((form, at) => form.test(fields[at]?.trim() ?? ""));
}

function removeQuotedLines(lines: readonly string[]): string {
  const kept: string[] = [];
  let isInQuote = false;
  for (const line of lines) {
    if (!line.startsWith(">")) {
      isInQuote = false;
      kept.push(line);
      continue;
    }
    if (!isInQuote) removeAttribution(kept);
    isInQuote = true;
  }
  return kept.join("\n");
}

const OPENING = /^\s*(on|am|le|el|il|em|op|den|dnia|w dniu|在|于)\b/i;
const TIME_OR_ADDRESS = /[^\s<]@[^\s>]|\d{1,2}[:.h]\d{2}|\d{4}/;

/** Removes a line such as "On Friday Ada wrote:" in front of a quote. Programs break it after some words. */
function removeAttribution(kept: string[]): void {
  let at = kept.length - 1;
  // More empty lines than these don't belong to an attribution, and a search through all of them would take square time.
  while (at >= kept.length - ATTRIBUTION_MAX_LINES && kept[at]?.trim() === "") at--;
  const last = kept[at]?.trim() ?? "";
  if (!/[:：]$/.test(last)) return;
  const lines = Array.from({ length: ATTRIBUTION_MAX_LINES }, (_, more) => at - more).filter((one) =>
    one >= 0
  );
  const opening = lines.find((one) => OPENING.test(kept[one] ?? ""));
  const start = opening ?? at;
  const whole = kept.slice(start, at + 1).join(" ");
  // The sender's own sentence can end with a colon, too. An attribution names an address or a time.
  if (whole.length <= ATTRIBUTION_MAX_CHARACTERS && TIME_OR_ADDRESS.test(whole)) kept.length = start;
}
