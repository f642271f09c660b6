import type { LucideIcon } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

interface MenuProps {
  icon: LucideIcon;
  /** The accessible name if the button shows only its icon, else its text. */
  label: string;
  iconOnly?: boolean;
  small?: boolean;
  class?: string;
  children: ComponentChildren;
}

/** A button that opens a box below it. Escape or a click elsewhere closes the box, and so does a button in it. */
export function Menu(
  { icon: Icon, label, iconOnly = false, small = false, class: classes = "", children }: MenuProps,
) {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!open) return;
    const close = (event: Event) => box.current?.contains(event.target as Node) || setOpen(false);
    document.addEventListener("pointerdown", close);
    return () => document.removeEventListener("pointerdown", close);
  }, [open]);
  function onKeyDown(event: KeyboardEvent): void {
    if (event.key !== "Escape" || !open) return;
    event.stopPropagation();
    setOpen(false);
    button.current?.focus();
  }
  return (
    <div class={`menu ${classes}`} ref={box} onKeyDown={onKeyDown}>
      <button
        type="button"
        ref={button}
        class={iconOnly ? "icon small" : small ? "small" : ""}
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        {...(iconOnly ? { "aria-label": label, title: label } : {})}
      >
        <Icon size={iconOnly || small ? 14 : 16} aria-hidden="true" /> {!iconOnly && label}
      </button>
      {open && (
        <div
          class="menu-box"
          onClick={(event) => (event.target as Element).closest("button") && setOpen(false)}
        >
          {children}
        </div>
      )}
    </div>
  );
}
