/** The mark of svc: three cells, one of them lit. The same drawing as `style/icon.svg`. */
export function Mark({ size }: { size: number }) {
  return (
    <svg class="mark" width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" />
      <path class="lit" d="M16 4.6 20.9 7.4v5.7L16 15.9l-4.9-2.8V7.4Z" />
      <path d="M10.5 14.4 15.4 17.2v5.7L10.5 25.7 5.6 22.9v-5.7Z" />
      <path d="M21.5 14.4 26.4 17.2v5.7L21.5 25.7 16.6 22.9v-5.7Z" />
    </svg>
  );
}
