/** Serves one level of language model (`model.fast` … `model.top`), as its environment says: docs/models.md. */
import { readModelSettings } from './configuration.ts';
import { defineModel } from './define-model.ts';

// Else the AI SDK prints a warning at every call that gives a parameter its provider does not have.
globalThis.AI_SDK_LOG_WARNINGS = false;

export const capability = defineModel(readModelSettings());
