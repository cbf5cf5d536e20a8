/** The file that the thread of schema-vetter.ts begins with: of the sources, or of what they are compiled to. */
export const schemaThreadEntry = new URL(
  import.meta.url.endsWith('.ts') ? './schema-thread.source.mjs' : './schema-thread.js',
  import.meta.url,
);
