import colors from "picocolors";

/** Colours for a terminal. Loaded only where there is one. */
export function createColors() {
  const { bold, dim, red, green, yellow, cyan } = colors.createColors(true);
  return { bold, dim, red, green, yellow, cyan };
}
