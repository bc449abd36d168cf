// Messages of protoc-gen-es: train on one datum as protobuf, and read its result.
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  DType,
  DatumSchema,
  ForwardBackwardOutputSchema,
  ForwardBackwardRequestSchema,
} from './generated/tinker_public_pb';

const [url, version] = process.argv.slice(2);

const post = async (path: string, body: Uint8Array | object): Promise<Response> => {
  const isMessage = body instanceof Uint8Array;
  const headers = {
    'X-API-Key': 'tml-rig',
    'Content-Type': isMessage ? 'application/x-protobuf' : 'application/json',
    Accept: path === 'retrieve_future' ? 'application/x-protobuf, application/json' : 'application/json',
  };
  return fetch(`${url}/api/v1/${path}`, { method: 'POST', headers, body: isMessage ? new Uint8Array(body) : JSON.stringify(body) });
};
const postJson = async (path: string, body: Uint8Array | object): Promise<any> => {
  const response = await post(path, body);
  if (response.status !== 200) throw new Error(`${path}: status ${response.status}: ${await response.text()}`);
  return response.json();
};

const main = async (): Promise<void> => {
  const session = { tags: [], user_metadata: null, sdk_version: version, type: 'create_session' };
  const { session_id } = await postJson('create_session', session);
  const capabilities = await (await fetch(`${url}/api/v1/get_server_capabilities`)).json();
  const model = { session_id, model_seq_id: 0, base_model: capabilities.supported_models[0].model_name };
  const created = await postJson('create_model', { ...model, lora_config: { rank: 4 }, type: 'create_model' });
  const { model_id } = await (await post('retrieve_future', { request_id: created.request_id })).json();
  const bytes = (values: Int32Array | BigInt64Array | Float32Array): Uint8Array<ArrayBuffer> =>
    new Uint8Array(values.buffer as ArrayBuffer);
  const dense = (values: BigInt64Array | Float32Array): { case: 'dense'; value: Uint8Array<ArrayBuffer> } => ({
    case: 'dense',
    value: bytes(values),
  });
  const datum = create(DatumSchema, {
    modelInput: [{ chunk: { case: 'encodedText', value: { tokens: bytes(Int32Array.of(1, 2)) } } }],
    lossFnInputs: {
      target_tokens: { encoding: dense(BigInt64Array.of(2n, 3n)), dtype: DType.DTYPE_INT64, shape: [2n] },
      weights: { encoding: dense(Float32Array.of(1, 1)), dtype: DType.DTYPE_FLOAT32, shape: [2n] },
    },
  });
  const request = create(ForwardBackwardRequestSchema, {
    modelId: model_id,
    seqId: 1,
    data: [datum],
    lossFn: 'cross_entropy',
  });
  const future = await postJson('forward_backward', toBinary(ForwardBackwardRequestSchema, request));
  const result = await post('retrieve_future', { request_id: future.request_id });
  if (result.headers.get('content-type') !== 'application/x-protobuf') throw new Error(await result.text());
  const output = fromBinary(ForwardBackwardOutputSchema, new Uint8Array(await result.arrayBuffer()));
  if (!('loss:sum' in output.metrics)) throw new Error(`no loss in ${Object.keys(output.metrics).join(', ')}`);
  console.log('6 calls');
};

main();
