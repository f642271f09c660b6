import { Link } from "wouter-preact";

/** The way to a conversation by its key. */
export function ConversationLink({ sessionKey }: { sessionKey: string }) {
  const id = /^local:(.+)$/.exec(sessionKey)?.[1] ?? sessionKey;
  return <Link href={`/console/chat/${encodeURIComponent(id)}`}>open the conversation</Link>;
}
