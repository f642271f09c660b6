import { z } from "zod";

/** What a deletion answers (contract 1.3). */
export const deletedSchema = z.strictObject({ status: z.literal("deleted") }).meta({ id: "Deleted" });

export type Deleted = z.output<typeof deletedSchema>;
