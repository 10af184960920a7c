#include "io/remote/object_settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string_view>

#include "core/result/try.h"
#include "io/remote/ini_file.h"
#include "io/remote/object_url.h"

namespace stoker {

namespace {

constexpr std::initializer_list<const char*> kS3Endpoints = {"AWS_ENDPOINT_URL_S3",
                                                             "AWS_ENDPOINT_URL"};
constexpr char kGsEndpoint[] = "STORAGE_EMULATOR_HOST";

// Returns the variable's value; empty if it is unset.
std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Returns the value of the first of the variables that is set.
std::string FirstOf(std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    if (std::string value = Variable(name); !value.empty()) return value;
  }
  return "";
}

// Returns the beginning of a file of AWS' tools, named by a variable or in ~/.aws; empty if there
// is none.
std::string AwsFile(const char* variable, const char* name) {
  std::string path = Variable(variable);
  if (path.empty()) {
    const std::string home = Variable("HOME");
    if (home.empty()) return "";
    path = home + "/.aws/" + name;
  }
  std::array<char, 256 << 10> text{};
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), text.size());
  return {text.data(), static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0))};
}

std::string Profile() {
  std::string profile = FirstOf({"AWS_PROFILE", "AWS_DEFAULT_PROFILE"});
  return profile.empty() ? "default" : profile;
}

std::string RegionInConfig() {
  const std::string profile = Profile();
  const std::string section = profile == "default" ? profile : "profile " + profile;
  return IniSection(AwsFile("AWS_CONFIG_FILE", "config"), section)["region"];
}

Status SetEndpoint(const char* names, std::string value, std::string& endpoint) {
  if (value.empty()) return {};
  while (value.ends_with('/')) value.pop_back();
  const bool is_http = value.starts_with("http://") || value.starts_with("https://");
  if (!is_http || !ParseObjectUrl(value).ok()) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = std::string(names) + (value.find('@') == std::string::npos
                                                    ? " is not the URL of a server: '" + value + "'"
                                                    : " must have no '@', and no password"),
                 .advice = "Give one like https://s3.example.com"};
  }
  endpoint = std::move(value);
  return {};
}

Status SetNumber(const char* name, int low, int high, int& number) {
  const std::string text = Variable(name);
  if (text.empty()) return {};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && low <= number && number <= high) {
    return {};
  }
  return Error{Code::kInvalidArgument, std::string(name) + " is '" + text +
                                           "'; it must be an integer from " + std::to_string(low) +
                                           " to " + std::to_string(high)};
}

}  // namespace

Result<ObjectSettings> ObjectSettingsFromEnvironment() {
  ObjectSettings settings;
  TRY(SetEndpoint("AWS_ENDPOINT_URL", FirstOf(kS3Endpoints), settings.s3_endpoint));
  std::string emulator = Variable(kGsEndpoint);
  if (!emulator.empty() && emulator.find("://") == std::string::npos) emulator.insert(0, "http://");
  TRY(SetEndpoint("STORAGE_EMULATOR_HOST", std::move(emulator), settings.gs_endpoint));
  std::string region = FirstOf({"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (region.empty()) region = RegionInConfig();
  if (!region.empty()) settings.s3_region = std::move(region);
  settings.certificates = Variable("AWS_CA_BUNDLE");
  TRY(SetNumber("STOKER_HTTP_TIMEOUT", 1, 3600, settings.stall_timeout_s));
  TRY(SetNumber("STOKER_HTTP_TRIES", 1, 100, settings.tries));
  return settings;
}

std::string ObjectIdentity(const std::string& url) {
  std::string endpoint;
  if (url.starts_with("s3://")) endpoint = FirstOf(kS3Endpoints);
  if (url.starts_with("gs://")) endpoint = Variable(kGsEndpoint);
  return (endpoint.empty() ? "" : endpoint + " ") + WithoutSignature(url);
}

ObjectCredentials ObjectCredentialsFromEnvironment() {
  ObjectCredentials found;
  found.google_token = Variable("GOOGLE_OAUTH_ACCESS_TOKEN");
  AwsCredentials aws{.key_id = Variable("AWS_ACCESS_KEY_ID"),
                     .secret = Variable("AWS_SECRET_ACCESS_KEY"),
                     .token = Variable("AWS_SESSION_TOKEN")};
  if (aws.key_id.empty() || aws.secret.empty()) {
    auto values = IniSection(AwsFile("AWS_SHARED_CREDENTIALS_FILE", "credentials"), Profile());
    aws = {.key_id = values["aws_access_key_id"],
           .secret = values["aws_secret_access_key"],
           .token = values["aws_session_token"]};
  }
  if (!aws.key_id.empty() && !aws.secret.empty()) found.aws = std::move(aws);
  return found;
}

}  // namespace stoker
