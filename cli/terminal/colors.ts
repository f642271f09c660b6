import colors from "picocolors";

/** Creates color functions. Loaded only for a terminal. */
export function createColors() {
  const { bold, dim, red, green, yellow, cyan } = colors.createColors(true);
  return { bold, dim, red, green, yellow, cyan };
}
