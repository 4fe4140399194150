// One invocation: the programming model makes arguments, hooks and the function run, the model makes the answer. Every way it can
// end gives exactly one InvocationResponse.
'use strict';

const { WorkerError, failure, success } = require('./errors');
const { hookContext } = require('./hooks');
const { fromInvocationRequest, toInvocationResponse } = require('./rpc_values');

/** @returns {Promise<object>} the InvocationResponse; never rejects */
async function invoke({ app, logs, request }) {
  const { invocationId, functionId } = request;
  try {
    if (app.failure) throw app.failure;
    const registered = app.function(functionId);
    if (!registered) throw new WorkerError(`there is no function '${functionId}' in this worker`);
    const response = await run({ app, logs, registered, request: fromInvocationRequest(request) });
    return { ...toInvocationResponse(response), invocationId, result: success() };
  } catch (error) {
    return { invocationId, result: failure(error) };
  }
}

async function run({ app, logs, registered, request }) {
  const hookData = {};
  const about = { invocationId: request.invocationId, functionName: registered.metadata.name, hookData, userContext: undefined };
  const core = {
    invocationId: request.invocationId,
    request,
    metadata: registered.metadata,
    state: undefined,
    log: (level, category, message) => logs.fromApp(level, category, message, about),
  };
  const model = app.model.getInvocationModel(core);
  const { context, inputs } = await model.getArguments();
  about.userContext = context;
  const fixed = { hookData, appHookData: app.appHookData, invocationContext: context };

  const before = hookContext(fixed, { inputs, functionCallback: registered.callback });
  core.state = 'preInvocationHooks';
  await app.hooks.run('preInvocation', before);

  const after = hookContext(fixed, { inputs: before.inputs, result: null, error: null });
  core.state = 'invocation';
  try {
    after.result = await model.invokeFunction(context, before.inputs, before.functionCallback);
  } catch (error) {
    after.error = error ?? new Error(`the function threw ${error}`);
  }

  core.state = 'postInvocationHooks';
  await app.hooks.run('postInvocation', after);
  core.state = undefined;

  if (after.error !== null && after.error !== undefined) throw after.error;
  return model.getResponse(context, after.result);
}

module.exports = { invoke };
