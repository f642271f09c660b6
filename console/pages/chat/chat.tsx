import { Plus } from "lucide-preact";
import { useEffect } from "preact/hooks";
import { Link, useLocation } from "wouter-preact";
import { api, ask, askPage, type Conversation as Listed } from "../../live/api.ts";
import { type LiveList, useList } from "../../live/resource.ts";
import { may } from "../../live/session.ts";
import type { PageProps } from "../../pages.tsx";
import { Act } from "../../parts/button.tsx";
import { conversationText } from "../../parts/format.ts";
import { Empty, Waiting } from "../../parts/notice.tsx";
import { Rows } from "../../parts/rows.tsx";
import { Ago } from "../../parts/time.tsx";
import { attempt } from "../../parts/toast.tsx";
import { Status } from "../../parts/status.tsx";
import { Conversation } from "./conversation.tsx";
import { Elsewhere } from "./platform_conversation.tsx";

const ROW_PX = 56;
const PAGE_SIZE = 100;

/** The chat: conversations at the side (on a phone: before), and the one that is open (contract 17). */
export function ChatPage({ params: { id = "" } }: PageProps) {
  const sessions = useList<Listed>(
    "chat",
    (cursor, signal) => {
      const query = cursor === undefined ? { page_size: PAGE_SIZE } : { page_size: PAGE_SIZE, cursor };
      return askPage(api.GET("/api/conversations", { params: { query }, signal }));
    },
    ({ kind }) => kind.startsWith("chat.") || /^message\.(sent|received)$/.test(kind),
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
              <Act
                class={id === "" ? "primary" : ""}
                run={() => create()}
              >
                <Plus size={16} aria-hidden="true" /> New
              </Act>
            )}
          </div>
        </header>
        <Conversations sessions={sessions} current={id} create={create} />
      </div>
      {id === ""
        ? <div class="chat-none quiet">Choose a conversation, or begin a new one.</div>
        : id.includes(":")
        ? <Elsewhere key={id} sessionKey={id} />
        : <Conversation key={id} id={id} />}
    </div>
  );
}

interface ConversationsProps {
  sessions: LiveList<Listed>;
  current: string;
  create: () => Promise<void>;
}

function Conversations({ sessions, current, create }: ConversationsProps) {
  if (sessions.data === undefined) return <Waiting refusal={sessions.refusal} />;
  // One that got a message since the later pages were read stands at the top as well.
  const items = [...new Map(sessions.data.toReversed().map((one) => [one.session_key, one])).values()]
    .toReversed();
  if (items.length === 0) {
    return (
      <Empty title="No conversation yet.">
        {may("write:chat") && <Act run={() => create()}>Begin one</Act>}
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
        const one = items[index];
        return one && (
          <Link
            href={`/console/chat/${encodeURIComponent(idOf(one))}`}
            class="row"
            {...(idOf(one) === current ? { "aria-current": "page" as const } : {})}
          >
            <span class="row-main">
              <span class="row-title">{conversationText(one.name) || one.session_key}</span>
              <span class="row-note">{latest(one)}</span>
            </span>
            <span class="row-side">
              {one.active_tasks > 0 && <Status of="running" bare />}
              <Ago at={one.updated_at} />
            </span>
          </Link>
        );
      }}
    />
  );
}

// A local conversation is addressed by its session, one of another platform by its key.
function idOf({ session_id, session_key }: Listed): string {
  return session_id ?? session_key;
}

function latest({ role, text }: Listed): string {
  return role === "user" ? `You: ${text}` : text;
}
