// Starts schema-thread.ts in a checkout: a thread does not take over the TypeScript loader of its parent.
import { register } from 'tsx/esm/api';

register();
await import('./schema-thread.ts');
