interface MeterProps {
  label: string;
  /** How much of it is used: 1 is all. */
  part: number;
  /** The same in words. */
  text: string;
  state: string;
}

const FULL = 100;

/** How much of a limit is used, as a bar. */
export function Meter({ label, part, text, state }: MeterProps) {
  const percent = Math.min(FULL, Math.max(0, Math.round(part * FULL)));
  return (
    <div
      class={`meter ${state}`}
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={FULL}
      aria-valuenow={percent}
      aria-valuetext={text}
    >
      <div style={{ width: `${percent}%` }} />
    </div>
  );
}
