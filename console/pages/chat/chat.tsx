import { Plus } from "lucide-preact";
import { useEffect } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import { api, ask, askPage, type ChatSession } from "../../live/api.ts";
import { type LiveList, useList } from "../../live/resource.ts";
import { may } from "../../live/session.ts";
import type { PageProps } from "../../pages.tsx";
import { Empty, Waiting } from "../../parts/notice.tsx";
import { Rows } from "../../parts/rows.tsx";
import { Ago } from "../../parts/time.tsx";
import { attempt } from "../../parts/toast.tsx";
import { Conversation } from "./conversation.tsx";

const ROW_PX = 56;
const PAGE_SIZE = 100;

/** The chat: conversations at the side (on a phone: before), and the one that is open (contract 17). */
export function ChatPage({ params: { id = "" } }: PageProps) {
  const sessions = useList<ChatSession>(
    "chat",
    (cursor, signal) => {
      const query = cursor === undefined ? { page_size: PAGE_SIZE } : { page_size: PAGE_SIZE, cursor };
      return askPage(api.GET("/api/local/sessions", { params: { query }, signal }));
    },
    ({ kind, session_key }) =>
      kind.startsWith("chat.") || kind === "message.sent" && session_key.startsWith("local:"),
  );
  const [, navigate] = useLocation();
  async function create(): Promise<void> {
    await attempt(async () => {
      const made = await ask(api.POST("/api/local/sessions", { body: {} }));
      sessions.reload();
      navigate(`/console/chat/${made.id}`);
    });
  }
  useEffect(() => {
    if (id === "") document.title = "Chat · svc";
  }, [id]);
  return (
    <div class={id === "" ? "chat none-open" : "chat"}>
      <div class="chat-list">
        <header class="page-head">
          <div class="page-title">
            <h1>Chat</h1>
            {may("write:chat") && (
              <button
                type="button"
                class={id === "" ? "primary" : ""}
                onClick={() => void create()}
              >
                <Plus size={16} aria-hidden="true" /> New
              </button>
            )}
          </div>
        </header>
        <Conversations sessions={sessions} current={id} create={create} />
      </div>
      {id === ""
        ? <div class="chat-none quiet">Choose a conversation, or begin a new one.</div>
        : <Conversation key={id} id={id} session={sessions.data?.find((one) => one.id === id)} />}
    </div>
  );
}

interface ConversationsProps {
  sessions: LiveList<ChatSession>;
  current: string;
  create: () => Promise<void>;
}

function Conversations({ sessions, current, create }: ConversationsProps) {
  const items = sessions.data;
  if (items === undefined) return <Waiting refusal={sessions.refusal} />;
  if (items.length === 0) {
    return (
      <Empty title="No conversation yet.">
        {may("write:chat") && <button type="button" onClick={() => void create()}>Begin one</button>}
      </Empty>
    );
  }
  return (
    <Rows
      label="Conversations"
      count={items.length}
      height={ROW_PX}
      onEnd={sessions.more}
      row={(index) => {
        const session = items[index];
        return session && (
          <Link
            href={`/console/chat/${session.id}`}
            class="row"
            {...(session.id === current ? { "aria-current": "page" as const } : {})}
          >
            <span class="row-main">
              <span class="row-title">{session.name}</span>
            </span>
            <span class="row-side">
              <Ago at={session.updated_at} />
            </span>
          </Link>
        );
      }}
    />
  );
}
