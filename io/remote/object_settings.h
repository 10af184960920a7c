// ObjectSettings: the servers, timeouts, retries and credentials for reading objects. All of them
// come from the environment and from the files of AWS' tools.
#pragma once

#include <optional>
#include <string>

#include "core/result/result.h"

namespace stoker {

struct AwsCredentials {
  std::string key_id, secret;
  std::string token;  // session token; empty means none

  friend bool operator==(const AwsCredentials&, const AwsCredentials&) = default;
};

struct ObjectCredentials {
  std::optional<AwsCredentials> aws;  // nullopt means that requests are anonymous
  std::string google_token;           // empty: none

  friend bool operator==(const ObjectCredentials&, const ObjectCredentials&) = default;
};

struct ObjectSettings {
  std::string s3_endpoint;  // "http://127.0.0.1:9000", no slash at the end; AWS' own if empty
  std::string s3_region = "us-east-1";
  std::string gs_endpoint = "https://storage.googleapis.com";
  std::string certificates;  // a file of certificate authorities; empty means libcurl's own
  int connect_timeout_s = 10;
  int stall_timeout_s = 20;       // a transfer below 1 KiB/s for this long has failed
  int tries = 8;                  // of one request
  int first_retry_ms = 100;       // at most, before the second try; each further wait doubles
  int longest_retry_ms = 30'000;  // even if the server asks for more (Retry-After)
};

// Reads AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS_REGION, AWS_DEFAULT_REGION, the region of the
// profile in AWS_CONFIG_FILE (~/.aws/config), AWS_CA_BUNDLE, STORAGE_EMULATOR_HOST,
// STOKER_HTTP_TIMEOUT (seconds) and STOKER_HTTP_TRIES. InvalidArgument: a value cannot be used.
Result<ObjectSettings> ObjectSettingsFromEnvironment();

// Returns the text that identifies an object in caches and indexes: its URL without a signature,
// and the endpoint of the environment, if there is one, because buckets of two servers may have the
// same name.
std::string ObjectIdentity(const std::string& url);

// Reads AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, otherwise the profile
// AWS_PROFILE ("default") in AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials); and
// GOOGLE_OAUTH_ACCESS_TOKEN.
ObjectCredentials ObjectCredentialsFromEnvironment();

}  // namespace stoker
