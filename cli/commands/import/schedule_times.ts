const MINUTE_MS = 60_000;

// The service accepts exactly these fields.
const FIELD =
  /^(\*|(\d+|[a-z]{3})(-(\d+|[a-z]{3}))?)(\/\d+)?(,(\*|(\d+|[a-z]{3})(-(\d+|[a-z]{3}))?)(\/\d+)?)*$/i;

/** Returns the five fields of a cron expression, or null for one that the service does not accept. */
export function convertCron(expression: string): string | null {
  const fields = expression.trim().split(/\s+/);
  // A sixth field in front has the seconds.
  const five = fields.length === 6 && fields[0] === "0" ? fields.slice(1) : fields;
  return five.length === 5 && five.every((field) => FIELD.test(field)) ? five.join(" ") : null;
}

/** Returns the cron expression with the same interval, or null if there is none. */
export function convertInterval(everyMs: number): string | null {
  const minutes = everyMs / MINUTE_MS;
  if (!Number.isInteger(minutes) || minutes < 1) return null;
  if (minutes === 1) return "* * * * *";
  if (60 % minutes === 0) return minutes === 60 ? "0 * * * *" : `*/${minutes} * * * *`;
  const hours = minutes / 60;
  if (!Number.isInteger(hours) || 24 % hours !== 0) return null;
  return hours === 24 ? "0 0 * * *" : `0 */${hours} * * *`;
}

/** Whether the runtime knows a time zone. */
export function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}
