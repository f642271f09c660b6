import { Link } from "wouter-preact";
import { useConversationName } from "../../live/conversations.ts";
import { conversationText } from "../../parts/format.ts";

const NAME_MAX_CHARACTERS = 40;

/** The way to a conversation by its key, called as it is called. */
export function ConversationLink({ sessionKey }: { sessionKey: string }) {
  const id = /^local:(.+)$/.exec(sessionKey)?.[1] ?? sessionKey;
  const name = conversationText(useConversationName(sessionKey)) ||
    (id === sessionKey ? sessionKey : "a conversation");
  return (
    <Link href={`/console/chat/${encodeURIComponent(id)}`} title={name}>
      {name.length > NAME_MAX_CHARACTERS ? `${name.slice(0, NAME_MAX_CHARACTERS)}…` : name}
    </Link>
  );
}
