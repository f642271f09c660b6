import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { hasScope, signOut } from "./live/session.ts";
import { FORMS, ITEMS, PAGES_BELOW } from "./places.ts";
import { openKeyHelp } from "./shortcut_help.ts";
import type { PaletteEntry, PaletteProps } from "./pages/system/palette.tsx";

const isOpen = signal(false);
const loaded = signal<ComponentType<PaletteProps> | null>(null);

/** Opens the search for everything. Its code is loaded at the first use. */
export function openPalette(): void {
  isOpen.value = true;
  if (loaded.value !== null) return;
  import("./pages/system/palette.tsx").then(
    ({ Palette }) => loaded.value = Palette,
    () => isOpen.value = false,
  );
}

export function PaletteHost() {
  const Palette = loaded.value;
  if (!isOpen.value || Palette === null) return null;
  return <Palette entries={listEntries()} onClose={() => isOpen.value = false} />;
}

function listEntries(): PaletteEntry[] {
  const pages = [...ITEMS, ...PAGES_BELOW].map(({ href, name, scope }) => ({
    ...{ kind: "Pages" as const, text: name, scope },
    open: href,
  }));
  const forms = FORMS.map(({ href, name, scope }) => ({
    ...{ kind: "Commands" as const, text: name, scope },
    open: href,
  }));
  return [
    ...[...pages, ...forms].filter(({ scope }) => scope === "" || hasScope(scope)),
    { kind: "Commands", text: "Show keyboard shortcuts", open: openKeyHelp },
    { kind: "Commands", text: "Sign out", open: () => void signOut() },
  ];
}
