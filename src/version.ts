/** Version of this program; the build writes commit and date beside it. */
export const VERSION = "0.1.0";
