/** Serves a language model (`model.…`) or a model of embeddings (`embed.…`), by its environment: docs/models.md. */
import { readModelSettings } from './configuration.ts';
import { defineEmbedding } from './define-embedding.ts';
import { defineModel } from './define-model.ts';

// Else the AI SDK prints a warning at every call that gives a parameter its provider does not have.
globalThis.AI_SDK_LOG_WARNINGS = false;

const settings = readModelSettings();
const isEmbedding = settings.MODEL_CAPABILITY.startsWith('embed.');

export const capability = isEmbedding ? defineEmbedding(settings) : defineModel(settings);
