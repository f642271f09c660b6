import { Check, Copy } from "lucide-preact";
import { useState } from "preact/hooks";

const SHOWN_CHARACTERS = 6;
const SAID_MS = 1_500;

/** An id by its ending, which is what tells ids apart, with a button that copies the whole of it. */
export function ShortId({ value, what = "id" }: { value: string; what?: string }) {
  if (value === "") return <span class="quiet">–</span>;
  const short = value.length > SHOWN_CHARACTERS + 4 ? `…${value.slice(-SHOWN_CHARACTERS)}` : value;
  return (
    <span class="short-id" title={value}>
      <code>{short}</code>
      <CopyButton text={value} what={what} />
    </span>
  );
}

/** A button that copies a text. */
export function CopyButton({ text, what }: { text: string; what: string }) {
  const [copied, setCopied] = useState(false);
  async function copy(event: MouseEvent): Promise<void> {
    event.preventDefault();
    event.stopPropagation();
    await copyText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), SAID_MS);
  }
  const Icon = copied ? Check : Copy;
  return (
    <button type="button" class="icon small" onClick={copy} aria-label={copied ? "Copied" : `Copy ${what}`}>
      <Icon size={14} aria-hidden="true" />
    </button>
  );
}

async function copyText(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return await navigator.clipboard.writeText(text);
  // Without a secure context there is only the old way.
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "unseen";
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
