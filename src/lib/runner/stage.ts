// What stands between a change of user and a command: a small program of its own, which is that user already. It is told the
// command on a descriptor, where nobody else reads its environment, enters its directory and becomes it.

/** `begins`: it is the command from then on, or ends by SIGABRT with the kernel's reason on its stderr. */
export type StageEnd = 'begins' | { step: 'enter' | 'run'; code: string };

/** Its text is run by a Node.js of its own: it uses nothing from outside. */
function becomeCommand(): void {
  const { accessSync, closeSync, constants, openSync, readFileSync, readSync, statSync, writeSync } =
    process.getBuiltinModule('node:fs');
  const link = 3;
  const { program, args, dir, env } = JSON.parse(readFileSync(link, 'utf8')) as {
    program: string;
    args: string[];
    dir: string;
    env: Record<string, string>;
  };
  const fail = (code: string): never => {
    throw Object.assign(new Error(code), { code });
  };
  /** Why it cannot be run. */
  const findFault = (path: string): string | undefined => {
    try {
      accessSync(path, constants.X_OK);
      return statSync(path).isFile() ? undefined : 'EACCES';
    } catch (error) {
      return (error as NodeJS.ErrnoException).code;
    }
  };
  const listPaths = (): string[] =>
    program.includes('/')
      ? [program]
      : (env['PATH'] ?? '/bin:/usr/bin').split(':').map((place) => `${place || '.'}/${program}`);
  /** As execvp does: a place that may not be looked into hides no other. */
  const requireProgram = (): string => {
    const faults = listPaths().map((path) => ({ path, fault: findFault(path) }));
    const found = faults.find(({ fault }) => fault === undefined);
    return found?.path ?? fail(faults.some(({ fault }) => fault === 'EACCES') ? 'EACCES' : 'ENOENT');
  };
  const readHead = (path: string): string => {
    const head = Buffer.alloc(256);
    try {
      const fd = openSync(path, 'r');
      const length = readSync(fd, head);
      closeSync(fd);
      return head.toString('latin1', 0, length);
    } catch {
      // It may be run and not be read.
      return '\0';
    }
  };
  let step = 'enter';
  try {
    process.chdir(dir);
    step = 'run';
    const path = requireProgram();
    const head = readHead(path);
    const interpreter = /^#![ \t]*([^ \t\n]+)/.exec(head)?.[1];
    const fault = interpreter === undefined ? undefined : findFault(interpreter);
    if (fault !== undefined) fail(fault);
    // No argument and no variable may be longer, with the byte that ends it.
    const texts = [...args, ...Object.entries(env).map((pair) => pair.join('='))];
    if (texts.some((text) => Buffer.byteLength(text) > 131_071)) fail('E2BIG');
    // What Node.js ignores would stay ignored; what has a handler is as usual again.
    for (const signal of ['SIGPIPE', 'SIGXFSZ'] as const) process.on(signal, () => {});
    // A text without a first line that says so is one for a shell.
    const isText = interpreter === undefined && !head.includes('\0');
    writeSync(link, '"begins"\n');
    if (isText) process.execve?.('/bin/sh', ['/bin/sh', path, ...args], env);
    process.execve?.(path, [program, ...args], env);
  } catch (error) {
    const { code = String(error) } = error as NodeJS.ErrnoException;
    writeSync(link, `${JSON.stringify({ step, code })}\n`);
  }
}

export const stageText = `(${becomeCommand.toString()})()`;
