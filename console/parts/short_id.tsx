import { Check, Copy } from "lucide-preact";
import { useState } from "preact/hooks";
import { IconButton } from "./button.tsx";

const VISIBLE_CHARACTERS = 6;
const FEEDBACK_MS = 1_500;

/** The end of an id, which distinguishes it from others, with a button that copies all of it. */
export function ShortId({ value, subject = "id" }: { value: string; subject?: string }) {
  if (value === "") return <span class="quiet">–</span>;
  const short = value.length > VISIBLE_CHARACTERS + 4 ? `…${value.slice(-VISIBLE_CHARACTERS)}` : value;
  return (
    <span class="short-id" title={value}>
      <code>{short}</code>
      <CopyButton text={value} subject={subject} />
    </span>
  );
}

export function CopyButton({ text, subject }: { text: string; subject: string }) {
  const [copied, setCopied] = useState(false);
  async function copy(event: MouseEvent): Promise<void> {
    event.preventDefault();
    event.stopPropagation();
    await copyText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), FEEDBACK_MS);
  }
  return (
    <IconButton
      icon={copied ? Check : Copy}
      small
      label={copied ? "Copied" : `Copy ${subject}`}
      onClick={copy}
    />
  );
}

async function copyText(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return await navigator.clipboard.writeText(text);
  // The clipboard API needs a secure context. A selected text area works without one.
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "unseen";
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
