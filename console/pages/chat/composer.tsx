import { Paperclip, SendHorizontal, X } from "lucide-preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { api, ask, type Refusal, refusalOf } from "../../live/api.ts";
import { useDraft } from "../../live/draft.ts";
import { departs, leftBehind, settled } from "../../live/pending_messages.ts";
import { sizeText } from "../../parts/format.ts";
import { RefusalNotice } from "../../parts/notice.tsx";
import { completed, mentioned, MentionList } from "./mention_list.tsx";
import { upload } from "./upload.ts";

/** A message on its way; `messageId` when the service has it. */
export interface Sending {
  number: number;
  content: string;
  file: string;
  messageId: string | null;
}

interface ComposerProps {
  id: string;
  setSending: (change: (before: Sending[]) => Sending[]) => void;
  /** Called with what was sent, when the service has it. */
  onSent: (content: string) => void;
}

const ROWS_MAX = 8;
let number = 0;

/** The line to write in. What is typed is kept until it is sent, whatever happens to the page or the session. */
export function Composer({ id, setSending, onSent }: ComposerProps) {
  const [text, setText] = useDraft(`chat.${id}`);
  const [file, setFile] = useState<File | null>(null);
  const [sent, setSent] = useState<number | null>(null);
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [choice, setChoice] = useState(0);
  const area = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const names = mentioned(text, area.current?.selectionStart ?? text.length);
  useEffect(() => setChoice(0), [names.length]);
  // What is written may change while the answer is on its way.
  const now = useRef(text);
  now.current = text;
  const uploaded = useRef<{ file: File; path: string } | null>(null);
  useEffect(() => {
    // On a phone the keyboard would cover what one came to read.
    if (!coarse()) area.current?.focus();
    giveBack(leftBehind(id));
  }, []);

  // What was not sent stands before what has been written since.
  function giveBack(content: string): void {
    if (content !== "" && content !== now.current) {
      setText([content, now.current].filter(Boolean).join("\n\n"));
    }
  }

  async function send(event?: Event): Promise<void> {
    event?.preventDefault();
    const content = text.trim();
    if (content === "" && file === null || sent !== null) return;
    const mine: Sending = { number: ++number, content, file: file?.name ?? "", messageId: null };
    setRefusal(null);
    setText("");
    // The key lets a second try after a broken connection be the same message.
    const key = departs(id, content, mine.file);
    setSending((before) => [...before.slice(-20), mine]);
    try {
      const body: { content: string; media_path?: string } = { content };
      if (file !== null) {
        setSent(0);
        if (uploaded.current?.file !== file) {
          uploaded.current = { file, path: await upload(id, file, setSent) };
        }
        body.media_path = uploaded.current.path;
      }
      const headers = { "Idempotency-Key": key };
      const queued = await ask(
        api.POST("/api/local/sessions/{id}/messages", { params: { path: { id } }, body, headers }),
      );
      setFile(null);
      settled(id, key);
      onSent(content);
      setSending((before) =>
        before.map((one) => one === mine ? { ...one, messageId: queued.message_id } : one)
      );
    } catch (error) {
      const refused = refusalOf(error);
      setRefusal(refused);
      if (refused.status !== 0) settled(id, key);
      setSending((before) => before.filter((one) => one !== mine));
      giveBack(content);
    }
    setSent(null);
  }

  function complete(name: string): void {
    setText(completed(text, area.current?.selectionStart ?? text.length, name));
    area.current?.focus();
  }

  function key(event: KeyboardEvent): void {
    const name = names[Math.min(choice, names.length - 1)];
    if (name !== undefined && (event.key === "Tab" || event.key === "Enter")) {
      event.preventDefault();
      complete(name);
    } else if (names.length > 0 && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      setChoice((choice + (event.key === "ArrowDown" ? 1 : names.length - 1)) % names.length);
    } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing && !coarse()) {
      void send(event);
    }
  }

  return (
    <form class="composer" onSubmit={send}>
      <RefusalNotice refusal={refusal} />
      {file !== null && (
        <p class="attached">
          <Paperclip size={14} aria-hidden="true" /> {file.name}{" "}
          <span class="quiet">{sizeText(file.size)}</span>
          {sent === null
            ? (
              <button
                type="button"
                class="icon small"
                aria-label="Leave the file out"
                onClick={() => setFile(null)}
              >
                <X size={14} aria-hidden="true" />
              </button>
            )
            : <progress max={1} value={sent} aria-label="Upload" />}
        </p>
      )}
      <div class="composer-line">
        {names.length > 0 && <MentionList names={names} choice={choice} onChoose={complete} />}
        <button type="button" class="icon" aria-label="Add a file" onClick={() => picker.current?.click()}>
          <Paperclip size={18} aria-hidden="true" />
        </button>
        <input
          ref={picker}
          type="file"
          hidden
          onChange={(event) => setFile(event.currentTarget.files?.[0] ?? null)}
        />
        <textarea
          ref={area}
          aria-label="Message"
          placeholder="Write a message"
          rows={Math.min(ROWS_MAX, text.split("\n").length)}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={key}
          {...(names.length > 0
            ? { "aria-controls": "mentions", "aria-activedescendant": `mention-${choice}` }
            : {})}
        />
        <button
          type="submit"
          class="primary icon"
          aria-label="Send"
          disabled={text.trim() === "" && file === null || sent !== null}
        >
          <SendHorizontal size={18} aria-hidden="true" />
        </button>
      </div>
    </form>
  );
}

// On a phone's keyboard Enter is a new line, as everywhere there.
function coarse(): boolean {
  return matchMedia("(pointer: coarse)").matches;
}
