// SPDX-License-Identifier: Apache-2.0
// Short names of kernels: what they keep, what they leave out, and that no two are alike.
#include "tools/analysis/short_names.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace gpuprof::analysis {
namespace {

TEST(ShortNames, FunctorAndTypesAreKept) {
  const std::pair<const char*, const char*> cases[] = {
      {"plain_kernel", "plain_kernel"},
      {"void scale<float>(float*, int)", "scale<float>"},
      {"void lib::inner::scale<float>(lib::inner::Args)", "scale<float>"},
      {"void (anonymous namespace)::scale<double>(double*)", "scale<double>"},
      {"lib::offsets(lib::Offsets)", "offsets"},
      {"void lib::map_kernel<4, lib::Add<float>, lib::detail::Array<char*, 3> >(int)",
       "map_kernel<4, Add<float>>"},
      {"void lib::map_kernel<4, lib::Mul<lib::Half>, std::array<char*, 3ul> >(int)",
       "map_kernel<4, Mul<Half>>"},
      {"void lib::map<lib::Load<2>, TrivialOffsetCalculator<1, unsigned int>, char const*>(int)",
       "map<Load<2>, char const*>"},
      {"void lib::reduce<float, float, float, 8, 8, 8>(float*)", "reduce<float x3, 8, 8, 8>"},
      {"void lib::pick<(lib::Kind)2, true, 16ul, -1>(int)", "pick<2, true, 16, -1>"},
      {"std::enable_if<true, void>::type lib::guarded<int>(int)", "guarded<int>"},
      {"void lib::scan<lib::Policy<int>::Wide, std::plus<int> >(int)",
       "scan<Policy<int>::Wide, plus<int>>"},
      {"void lib::map_kernel<4, lib::copy_cuda(lib::Iterator&)::{lambda()#3}::operator()() "
       "const::{lambda()#7}::operator()() const::{lambda(float)#1}>(int)",
       "map_kernel<4, copy_cuda{3.7.1(float)}>"},
      {"void elementwise_kernel<128, 2, at::native::gpu_kernel_impl<lib::Add<float> >(lib::It&, "
       "lib::Add<float> const&)::{lambda(int)#1}>(int)",
       "elementwise_kernel<128, 2, Add<float>>"},
      {"void reduce<lib::Sum<float>::operator()(lib::Iterator&)::{lambda(float, float)#1}>(int)",
       "reduce<Sum<float>{1(float, float)}>"},
      {"_Z5scaleIfEvPT_", "scale<float>"},
      {"attention.kd", "attention"},
      {"void scale<float>(float*) [clone .kd]", "scale<float>"},
      {"volta_sgemm_128x32_nn", "volta_sgemm_128x32_nn"},
      {"bool lib::operator< <int>(int)", "bool lib::operator< <int>(int)"},
  };
  for (const auto& [full, parts] : cases) EXPECT_EQ(name_parts(full), parts) << full;
}

TEST(ShortNames, WhatIsDamagedStaysAsItIs) {
  for (const char* const name : {"", "<", "void f<int(", "a>b", "void f<g<int>(int)", "((((",
                                 "::", "_Z", "void ", "f)", "{lambda(", "f{lambda(float"}) {
    EXPECT_EQ(name_parts(name), name);
    EXPECT_EQ(short_names(std::vector<std::string>{name}).size(), 1U);
  }
}

// Names as frameworks make them, of which any two differ in one part alone.
std::vector<std::string> many_names() {
  std::vector<std::string> out;
  for (const char* const kernel : {"map_kernel", "unrolled_map_kernel"}) {
    for (const char* const functor : {"Add", "Mul", "Fill", "Compare", "lib::binary::Scaled"}) {
      for (const char* const type : {"float", "double", "lib::Half", "long"}) {
        for (const char* const pointers : {"2", "3"}) {
          for (const char* const parameters : {"int", "long"}) {
            out.push_back(std::string("void lib::") + kernel + "<4, " + functor + "<" + type +
                          ">, lib::Array<char*, " + pointers + "> >(" + parameters + ")");
          }
        }
      }
    }
  }
  for (int tile = 0; tile < 40; ++tile) {
    out.push_back("gemm_" + std::string(150, 'k') + std::to_string(tile) + std::string(150, 'n'));
    out.push_back("void lib" + std::to_string(tile) + "::init(int)");
  }
  return out;
}

TEST(ShortNames, NoTwoAreAlike) {
  const std::vector<std::string> names = many_names();
  ASSERT_GE(names.size(), 200U);
  for (const size_t width : {size_t{24}, size_t{44}, kShortNameBytes}) {
    const auto found = short_names(names, width);
    std::set<std::string> distinct;
    for (const auto& [full, text] : found) {
      EXPECT_LE(text.size(), width) << full;
      distinct.insert(text);
    }
    EXPECT_EQ(distinct.size(), names.size());
  }
}

TEST(ShortNames, WhatStandsAloneIsTheSameInEverySet) {
  const std::vector<std::string> one = {"void lib::scale<float>(float*)"};
  const std::vector<std::string> two = {one[0], "void lib::scale<double>(double*)"};
  const std::vector<std::string> alike = {one[0], "void other::scale<float>(float*)"};
  EXPECT_EQ(short_names(one).at(one[0]), "scale<float>");
  EXPECT_EQ(short_names(two).at(one[0]), "scale<float>");
  const auto tagged = short_names(alike);
  EXPECT_TRUE(tagged.at(alike[0]).starts_with("scale<float>~"));
  EXPECT_NE(tagged.at(alike[0]), tagged.at(alike[1]));
}

TEST(ShortNames, NoCharacterIsCut) {
  std::string name;
  for (int i = 0; i < 100; ++i) name += "\u00e4";
  for (size_t width = 24; width < 60; ++width) {
    const std::string text = short_names(std::vector<std::string>{name}, width).at(name);
    size_t at = 0;
    while (text.substr(at).starts_with("\u00e4")) at += 2;
    EXPECT_TRUE(text.substr(at).starts_with("...\u00e4")) << text;
  }
}

}  // namespace
}  // namespace gpuprof::analysis
