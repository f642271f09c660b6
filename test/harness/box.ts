/** Settings for boxes: when the tests run as root, a box needs another user. */
export const BOX_SETTINGS = { box: { user: Deno.uid() === 0 ? "nobody" : "" } };
