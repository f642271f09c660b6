import type { LucideIcon } from "lucide-preact";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface MenuProps {
  icon: LucideIcon;
  /** The accessible name if the button shows only its icon, else its text. */
  label: string;
  iconOnly?: boolean;
  small?: boolean;
  class?: string;
  children: ComponentChildren;
}

/** A button that opens a box below it. Escape or a click elsewhere closes the box. */
export function Menu(
  { icon: Icon, label, iconOnly = false, small = false, class: classes = "", children }: MenuProps,
) {
  const box = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const close = (event: Event) => {
      if (box.current?.open && !box.current.contains(event.target as Node)) box.current.open = false;
    };
    document.addEventListener("pointerdown", close);
    return () => document.removeEventListener("pointerdown", close);
  }, []);
  function onKeyDown(event: KeyboardEvent): void {
    if (event.key !== "Escape" || box.current?.open !== true) return;
    event.stopPropagation();
    box.current.open = false;
    box.current.querySelector("summary")?.focus();
  }
  return (
    <details class={`menu ${classes}`} ref={box} onKeyDown={onKeyDown}>
      <summary
        class={`button ${iconOnly ? "icon small" : small ? "small" : ""}`}
        {...(iconOnly ? { "aria-label": label, title: label } : {})}
      >
        <Icon size={iconOnly || small ? 14 : 16} aria-hidden="true" /> {!iconOnly && label}
      </summary>
      <div
        class="menu-box"
        onClick={(event) =>
          (event.target as Element).closest("button") && box.current?.removeAttribute("open")}
      >
        {children}
      </div>
    </details>
  );
}
