import { Plus } from "lucide-preact";
import { useEffect } from "preact/hooks";
import { useLocation } from "wouter-preact";
import type { PageProps } from "../../live/address.ts";
import { api, load, type Schemas } from "../../live/api.ts";
import { useList } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { Button } from "../../parts/button.tsx";
import { formatConversationName } from "../../parts/format.ts";
import { Listing, Row } from "../../parts/listing.tsx";
import { Empty } from "../../parts/notice.tsx";
import { formatPreview } from "../../parts/plain_text.ts";
import { Status } from "../../parts/status.tsx";
import { Ago } from "../../parts/time.tsx";
import { LocalConversation } from "./conversation.tsx";
import { PlatformConversation } from "./platform_conversation.tsx";

type Conversation = Schemas["Conversation"];

const ROW_PX = 56;

/** The list of conversations and the open conversation. A phone shows one of both. */
export function Page({ params: { id = "" } }: PageProps) {
  const list = useList("/api/conversations", {}, /^chat\.|^message\.(sent|received)$/);
  const [, navigate] = useLocation();
  async function create(): Promise<void> {
    const created = await load(api.POST("/api/local/sessions", { body: {} }));
    list.reload();
    navigate(`/console/chat/${created.id}`);
  }
  useEffect(() => {
    if (id === "") document.title = "Chat · svc";
  }, [id]);
  const writable = hasScope("write:chat");
  // A conversation with a new message is at the top, and may also be in a page that was read before.
  const unique = list.data &&
    [...new Map(list.data.toReversed().map((one) => [one.session_key, one])).values()].toReversed();
  return (
    <div class={id === "" ? "chat none-open" : "chat"}>
      <div class="chat-list">
        <header class="page-head">
          <div class="page-title">
            <h1>Chat</h1>
            {writable && <Button class={id === "" ? "primary" : ""} icon={Plus} press={create}>New</Button>}
          </div>
        </header>
        <Listing
          list={{ ...list, data: unique }}
          label="Conversations"
          height={ROW_PX}
          row={(one) => <ConversationRow conversation={one} current={getAddressId(one) === id} />}
          empty={
            <Empty title="No conversations yet.">
              {writable && <Button press={create}>Start a conversation</Button>}
            </Empty>
          }
        />
      </div>
      {id === ""
        ? <div class="chat-none quiet">Select a conversation, or start a new one.</div>
        : id.includes(":")
        ? <PlatformConversation key={id} sessionKey={id} />
        : <LocalConversation key={id} id={id} />}
    </div>
  );
}

// The address has the session id of a local conversation, and the key of another one.
function getAddressId({ session_id, session_key }: Conversation): string {
  return session_id ?? session_key;
}

function ConversationRow({ conversation, current }: { conversation: Conversation; current: boolean }) {
  const { name, session_key, role, text, active_tasks, updated_at } = conversation;
  return (
    <Row
      href={`/console/chat/${encodeURIComponent(getAddressId(conversation))}`}
      current={current}
      title={formatConversationName(name) || session_key}
      notes={[role === "user" ? `You: ${formatPreview(text)}` : formatPreview(text)]}
      side={
        <>
          {active_tasks > 0 && <Status value="running" bare />}
          <Ago at={updated_at} />
        </>
      }
    />
  );
}
