import type { LucideIcon } from "lucide-preact";
import type { ComponentChildren, ComponentProps } from "preact";
import { useRef, useState } from "preact/hooks";
import { Link } from "wouter-preact";
import { hasScope } from "../live/session.ts";
import { confirm, type Confirmation } from "./dialog.tsx";
import { attempt } from "./toast.tsx";

interface ButtonProps {
  /** Runs the action. The button shows its error as a message. A result of false means that the user declined. */
  press: () => unknown;
  confirm?: Confirmation;
  done?: string | undefined;
  after?: (succeeded: boolean) => void;
  icon?: LucideIcon;
  children?: ComponentChildren;
  class?: string;
  /** The accessible name, if it differs from the visible text. */
  label?: string;
  title?: string;
  /** Users without this scope do not see the button. */
  scope?: string;
}

/** A button. While it waits for the service, further presses do nothing. */
export function Button(props: ButtonProps) {
  const { press, confirm: question, done, after, icon: Icon, children, class: classes = "" } = props;
  const { label, title, scope } = props;
  const [busy, setBusy] = useState(false);
  const running = useRef(false);
  async function run(): Promise<void> {
    if (running.current) return;
    running.current = true;
    setBusy(true);
    if (question === undefined || await confirm(question)) {
      let declined = false;
      const succeeded = await attempt(async () => {
        declined = await press() === false;
      }, done);
      if (!declined) after?.(succeeded);
    }
    running.current = false;
    setBusy(false);
  }
  if (scope !== undefined && !hasScope(scope)) return null;
  // `disabled` would take the focus away from keyboard users.
  return (
    <button
      type="button"
      class={classes}
      aria-busy={busy}
      aria-label={label}
      title={title}
      onClick={() => void run()}
    >
      {Icon !== undefined && <Icon size={classes.includes("small") ? 14 : 16} aria-hidden="true" />}
      {Icon !== undefined && children !== undefined && " "}
      {children}
    </button>
  );
}

interface IconButtonProps extends Omit<ComponentProps<"button">, "icon" | "label" | "size"> {
  icon: LucideIcon;
  label: string;
  size?: number;
  small?: boolean;
}

/** A button that shows only an icon, for actions without a request. */
export function IconButton({ icon: Icon, label, size = 14, small = false, ...rest }: IconButtonProps) {
  return (
    <button type="button" class={small ? "icon small" : "icon"} aria-label={label} {...rest}>
      <Icon size={size} aria-hidden="true" />
    </button>
  );
}

interface LinkButtonProps {
  href: string;
  icon?: LucideIcon;
  class?: string;
  scope?: string;
  children: ComponentChildren;
}

export function LinkButton({ href, icon: Icon, class: classes = "", scope, children }: LinkButtonProps) {
  if (scope !== undefined && !hasScope(scope)) return null;
  return (
    <Link href={href} class={`button ${classes}`}>
      {Icon !== undefined && <Icon size={16} aria-hidden="true" />} {children}
    </Link>
  );
}
