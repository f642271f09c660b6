import { LoaderCircle, OctagonX } from "lucide-preact";
import type { ComponentChildren } from "preact";
import type { Refusal } from "../live/api.ts";

/** What the service said against something, as it said it. */
export function RefusalNotice({ refusal }: { refusal: Refusal | null }) {
  if (refusal === null) return null;
  return (
    <div class="notice bad" role="alert">
      <OctagonX size={18} aria-hidden="true" />
      <div>
        <p>{refusal.message}</p>
        {refusal.errors.length > 1 && (
          <ul>{refusal.errors.map(({ path, message }) => <li key={path}>{path}: {message}</li>)}</ul>
        )}
      </div>
    </div>
  );
}

/** Shown while the first answer is on its way; only after a moment, so that quick answers do not flicker. */
export function Loading() {
  return (
    <div class="loading" role="status">
      <LoaderCircle size={18} class="spins" aria-hidden="true" />
      <span class="unseen">Loading</span>
    </div>
  );
}

/** Nothing is here, and what comes next. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** What a resource shows before it has data: the refusal, or that it is loading. */
export function Waiting({ refusal }: { refusal: Refusal | null }) {
  return refusal === null ? <Loading /> : <RefusalNotice refusal={refusal} />;
}
