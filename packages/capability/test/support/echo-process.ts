/** A stand-alone capability file, as an author writes one; run as a child process. */
import { serveCapability } from '../../src/index.ts';
import { anEcho } from './capabilities.ts';

await serveCapability(anEcho());
