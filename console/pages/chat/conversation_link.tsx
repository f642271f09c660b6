import { Link } from "wouter-preact";
import { useConversationName } from "../../live/conversations.ts";
import { formatConversationName } from "../../parts/format.ts";

const NAME_MAX_CHARACTERS = 40;

export function ConversationLink({ sessionKey }: { sessionKey: string }) {
  const id = /^local:(.+)$/.exec(sessionKey)?.[1] ?? sessionKey;
  const name = formatConversationName(useConversationName(sessionKey)) ||
    (id === sessionKey ? sessionKey : "a conversation");
  return (
    <Link href={`/console/chat/${encodeURIComponent(id)}`} title={name}>
      {name.length > NAME_MAX_CHARACTERS ? `${name.slice(0, NAME_MAX_CHARACTERS)}…` : name}
    </Link>
  );
}
