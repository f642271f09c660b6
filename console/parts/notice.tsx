import { LoaderCircle, OctagonX } from "lucide-preact";
import type { ComponentChildren } from "preact";
import type { ApiError } from "../live/api_error.ts";

export function ErrorNotice({ error }: { error: ApiError | null }) {
  if (error === null) return null;
  return (
    <div class="notice bad" role="alert">
      <OctagonX size={18} aria-hidden="true" />
      <div>
        <p>{error.message}</p>
        {error.errors.length > 1 && (
          <ul>{error.errors.map(({ path, message }) => <li key={path}>{path}: {message}</li>)}</ul>
        )}
      </div>
    </div>
  );
}

export function Notice({ tone = "", children }: { tone?: "warn" | "bad" | ""; children: ComponentChildren }) {
  return (
    <div class={`notice ${tone}`} role="note">
      <p>{children}</p>
    </div>
  );
}

/** A spinner. Its style delays it, so that quick answers do not flicker. */
export function Loading() {
  return (
    <div class="loading" role="status">
      <LoaderCircle size={18} class="spins" aria-hidden="true" />
      <span class="unseen">Loading</span>
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

/** Shows that a resource without data is loading, or why it failed. */
export function LoadState({ error }: { error: ApiError | null }) {
  return error === null ? <Loading /> : <ErrorNotice error={error} />;
}
