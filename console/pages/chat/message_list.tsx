import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Schemas } from "../../live/api.ts";
import { MessageView } from "./message.tsx";
import type { Sender } from "./sender.tsx";

type Message = Schemas["LocalMessage"];

const NEAR_END_PX = 120;

interface ListProps {
  messages: readonly Message[];
  /** The session of a local conversation, or "". */
  sessionId: string;
  questions: readonly Schemas["Question"][] | undefined;
  /** Senders of replies by the ids of the replies. */
  senders?: ReadonlyMap<string, Sender> | undefined;
  /** Failed runs by their ids. */
  failures?: ReadonlyMap<string, Schemas["Execution"]> | undefined;
  /** Changes whenever the content after the messages changes. */
  end?: string;
  before?: ComponentChildren;
  children?: ComponentChildren;
}

/** The messages of a conversation. It stays at its end unless the user has scrolled up. */
export function MessageList(props: ListProps) {
  const { messages, sessionId, questions, senders, failures, end = "", before, children } = props;
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  useLayoutEffect(() => {
    if (atEnd.current) box.current?.scrollTo({ top: box.current.scrollHeight });
  }, [messages.length, end]);
  // Buttons of a question and files arrive after the messages, and a phone's keyboard shrinks the page.
  useEffect(() => {
    const area = box.current;
    if (area === null) return;
    const resized = new ResizeObserver(() => atEnd.current && area.scrollTo({ top: area.scrollHeight }));
    for (const each of [area, ...area.children]) resized.observe(each);
    return () => resized.disconnect();
  }, []);
  function onScroll(): void {
    const { scrollTop = 0, clientHeight = 0, scrollHeight = 0 } = box.current ?? {};
    atEnd.current = scrollTop + clientHeight >= scrollHeight - NEAR_END_PX;
  }
  return (
    <div class="thread" ref={box} onScroll={onScroll} role="log" aria-label="Messages" tabIndex={0}>
      <div class="thread-inner">
        {before}
        {messages.map((message, index) => (
          <MessageView
            key={message.id}
            message={message}
            sessionId={sessionId}
            day={isNewDay(messages[index - 1], message)}
            sender={senders?.get(message.id)}
            failure={failures?.get(senders?.get(message.id)?.source_id ?? "")}
            question={questions?.find((one) => one.id === message.question_id)}
            questionsKnown={questions !== undefined}
          />
        ))}
        {children}
      </div>
    </div>
  );
}

function isNewDay(before: Message | undefined, message: Message): boolean {
  return before === undefined || new Date(before.ts).toDateString() !== new Date(message.ts).toDateString();
}
