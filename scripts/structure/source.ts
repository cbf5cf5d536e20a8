import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import ts from 'typescript';
import { sourceOf } from '../package/source-of.ts';

/** One file of TypeScript. It is parsed when a rule first asks for its tree; nodes do not know their parents. */
export interface Source {
  readonly file: string;
  readonly text: string;
  readonly tree: ts.SourceFile;
}

/** What one file imports, or hands on, from a module. */
export interface Import {
  /** A path in the repository, also of a package of the workspace, or a package: `zod`, `@temporalio/client`, `node:`. */
  readonly module: string;
  readonly isLocal: boolean;
  /** By the name of a package, not by a path. */
  readonly isByName: boolean;
  readonly isType: boolean;
  readonly line: number;
}

/** What a rule found. An exception names its `subject`. */
export interface Violation {
  readonly rule: string;
  readonly subject: string;
  readonly message: string;
}

export function parseSource(file: string, text: string): Source {
  const kind = file.endsWith('.tsx') ? ts.ScriptKind.TSX : ts.ScriptKind.TS;
  const options = {
    languageVersion: ts.ScriptTarget.ESNext,
    jsDocParsingMode: ts.JSDocParsingMode.ParseNone,
  };
  let tree: ts.SourceFile | undefined;
  return {
    file,
    text,
    get tree() {
      tree ??= ts.createSourceFile(file, text, options, false, kind);
      return tree;
    },
  };
}

/** What a node is in, from inside to outside, without the file. */
export function listOuter({ tree }: Source, node: ts.Node): ts.Node[] {
  const outer: ts.Node[] = [];
  const isAround = (one: ts.Node): boolean => one.pos <= node.pos && node.end <= one.end;
  const enter = (one: ts.Node): boolean => {
    if (one === node) return true;
    if (!isAround(one) || ts.forEachChild(one, (child) => enter(child) || undefined) !== true) return false;
    outer.push(one);
    return true;
  };
  ts.forEachChild(tree, (child) => enter(child) || undefined);
  return outer;
}

type TestText = (text: string) => boolean;

/** Files that git knows or would know. */
function readFiles(patterns: readonly string[], isWanted: TestText = () => true): Source[] {
  const globs = patterns.map((pattern) => `:(glob)${pattern}`);
  return execFileSync('git', ['ls-files', '-co', '--exclude-standard', '--', ...globs])
    .toString()
    .split('\n')
    .filter((file) => file !== '' && existsSync(file))
    .map((file) => [file, readFileSync(file, 'utf8')] as const)
    .filter(([, text]) => isWanted(text))
    .map(([file, text]) => parseSource(file, text));
}

const ofTestsOrTypes = /\.(test|d)\.tsx?$/;

/** All of the folders but tests and declarations of types. @param isWanted other texts are not parsed */
export function readSources(folders: readonly string[], isWanted?: TestText): Source[] {
  const patterns = folders.flatMap((folder) => [`${folder}/**/*.ts`, `${folder}/**/*.tsx`]);
  return readFiles(patterns, isWanted).filter(({ file }) => !ofTestsOrTypes.test(file));
}

/** The sources and the SQL of a commit, without a checkout. */
export function readSourcesAt(commit: string, folders: readonly string[]): Source[] {
  const files = git(['ls-tree', '-r', '--name-only', '-z', commit, '--', ...folders])
    .toString()
    .split('\0')
    .filter((file) => /\.(tsx?|sql)$/.test(file) && !ofTestsOrTypes.test(file));
  return readBlobs(commit, files).map((text, at) => parseSource(files[at] as string, text));
}

const mostBytes = 1024 ** 3;

function git(args: readonly string[], input = ''): Buffer {
  return execFileSync('git', args, { input, maxBuffer: mostBytes });
}

/** One process for all. Each answer is a line that ends in the size, then so many bytes and a line feed. */
function readBlobs(commit: string, files: readonly string[]): string[] {
  const answer = git(['cat-file', '--batch'], files.map((file) => `${commit}:${file}\n`).join(''));
  let at = 0;
  return files.map(() => {
    const begin = answer.indexOf('\n', at) + 1;
    const size = Number(answer.toString('utf8', at, begin).split(' ').at(-1));
    at = begin + size + 1;
    return answer.toString('utf8', begin, begin + size);
  });
}

/** Their lines count; no rule reads their tree. */
export function readSql(): Source[] {
  return readFiles(['src/**/*.sql']);
}

export function readTests(): Source[] {
  return readFiles(['test/**/*.test.ts', 'packages/*/test/**/*.test.ts']);
}

export function lineOf({ tree }: Source, node: ts.Node): number {
  return tree.getLineAndCharacterOfPosition(node.getStart(tree)).line + 1;
}

function packageOf(specifier: string): string {
  if (specifier.startsWith('node:')) return 'node:';
  const parts = specifier.split('/');
  return specifier.startsWith('@') ? parts.slice(0, 2).join('/') : (parts[0] ?? specifier);
}

interface Reference {
  readonly specifier: ts.Node | undefined;
  readonly isType: boolean;
}

function referenceOf(node: ts.Node): Reference | null {
  if (ts.isImportDeclaration(node)) {
    return { specifier: node.moduleSpecifier, isType: node.importClause?.isTypeOnly === true };
  }
  if (ts.isExportDeclaration(node)) return { specifier: node.moduleSpecifier, isType: node.isTypeOnly };
  if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
    return { specifier: node.argument.literal, isType: true };
  }
  if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
    return { specifier: node.arguments[0], isType: false };
  }
  return null;
}

const knownImports = new WeakMap<Source, readonly Import[]>();
/** Imports that are not statements at the top of a file. */
const innerImports = /\bimport\s*\(|\b(?:module|namespace|global)\b/;

function findImports(source: Source): Import[] {
  const isInner = innerImports.test(source.text);
  const imports: Import[] = [];
  const visit = (node: ts.Node): void => {
    const reference = referenceOf(node);
    if (reference?.specifier !== undefined && ts.isStringLiteralLike(reference.specifier)) {
      const { text } = reference.specifier;
      const found =
        sourceOf(text) ?? (text.startsWith('.') ? posix.join(posix.dirname(source.file), text) : null);
      const module = found ?? packageOf(text);
      const facts = { isLocal: found !== null, isByName: !text.startsWith('.'), isType: reference.isType };
      imports.push({ module, ...facts, line: lineOf(source, node) });
    }
    if (isInner) ts.forEachChild(node, visit);
  };
  source.tree.statements.forEach(visit);
  return imports;
}

export function listImports(source: Source): readonly Import[] {
  const imports = knownImports.get(source) ?? findImports(source);
  knownImports.set(source, imports);
  return imports;
}
