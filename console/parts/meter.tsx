interface MeterProps {
  label: string;
  /** The used share: 1 means all. */
  share: number;
  text: string;
  state: string;
}

const FULL = 100;

export function Meter({ label, share, text, state }: MeterProps) {
  const percent = Math.min(FULL, Math.max(0, Math.round(share * FULL)));
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
