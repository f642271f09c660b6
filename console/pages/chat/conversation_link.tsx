import { Link } from "wouter-preact";
import { ShortId } from "../../parts/short_id.tsx";

/** A conversation by its key: those of the console's own chat can be opened. */
export function ConversationLink({ sessionKey }: { sessionKey: string }) {
  const id = /^local:(.+)$/.exec(sessionKey)?.[1];
  if (id === undefined) return <ShortId value={sessionKey} what="session key" />;
  return <Link href={`/console/chat/${id}`}>open the chat</Link>;
}
