import { ArrowLeft } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { Link } from "wouter-preact";

/** The head of a conversation; its name is also the window's title. */
export function ConversationHead({ name, children }: { name: string; children?: ComponentChildren }) {
  useEffect(() => {
    document.title = `${name || "Chat"} · svc`;
  }, [name]);
  return (
    <header class="conversation-head">
      <Link href="/console/chat" class="icon on-phone" aria-label="All conversations">
        <ArrowLeft size={18} aria-hidden="true" />
      </Link>
      <h2>{name || "Conversation"}</h2>
      {children}
    </header>
  );
}
